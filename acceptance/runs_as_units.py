"""The controller as a unit that the manifest itself declares, and a node that pulls from a timer.

The controller runs on gpu03 and keeps gpu03 as well as the others: it is pushed to, loses its power and comes back by itself. The
program, its Python and git are bound into the nodes from this machine.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from acceptance.claims import ROOT, Claims, lab_of_own, own_config, say
from lab import Lab
from lab.shell import wait_for
from tests.e2e import truth
from tests.e2e.site import Site

THREE = ("gpu01", "gpu02", "gpu03")
MOTD, TOML, KEY, BARE = "/etc/motd", "/etc/reconcile.toml", "/etc/reconcile.key", "/srv/site.git"
PYTHON = Path(sys.prefix) / "bin" / "python"
ENVIRONMENT = f"Environment=PYTHONPATH={ROOT} HOME=/root"
CONTROLLER = f"""[Unit]
Description=reconcile controller
Wants=network-online.target
After=network-online.target

[Service]
{ENVIRONMENT}
ExecStart={PYTHON} -m reconciler controller --config {TOML}
Restart=always
RestartSec=2
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
"""
PULL = f"""[Service]
Type=oneshot
{ENVIRONMENT}
ExecStart={PYTHON} -m reconciler pull {BARE}
"""
TIMER = "[Timer]\nOnActiveSec=1s\nOnUnitInactiveSec=2s\n[Install]\nWantedBy=timers.target\n"
SETTINGS = f'repository = "{BARE}"\ninterval = "1s"\ndrift-interval = "5s"\n'
ON = {"enabled": "true", "state": "started"}


def bound(folder: Path) -> str:
    """What a node needs of this machine: the program, its Python, git, the repository, the lab's key."""
    same = {str(ROOT), sys.prefix, sys.base_prefix, "/usr/bin/git", "/usr/lib/git-core"}
    outer = sorted(path for path in same if not any(path != other and path.startswith(f"{other}/") for other in same))
    read_only = [f"bind-ro={path}:{path}" for path in outer] + [f"bind-ro={own_config().identity}:{KEY}"]
    return ",".join(["disk=host", *read_only, f"bind={folder}:{BARE}"])


def moved(lab: Lab, names: tuple[str, ...], motd: str) -> bool:
    """Whether the file comes to be so on these nodes."""
    wait_for(lambda: all(truth.text(lab.nodes[name], MOTD) == motd for name in names), f"{motd!r} on {names}", 120, 0.3)
    return True


def push(site: Site, bare: Path, **declared: Any) -> None:
    site.declare(**declared)
    site.git("push", "--quiet", str(bare), "HEAD:main")


def controller(claims: Claims, lab: Lab, site: Site, bare: Path) -> None:
    say("the first apply, from here: it brings the controller's unit to gpu03")
    units = {"reconcile-controller.service": {"source": "files/controller.service", **ON}}
    own = {"gpu03": {"files": {TOML: {"source": "files/controller.toml"}}, "units": units}}
    for name, text in (("controller.toml", SETTINGS), ("controller.service", CONTROLLER)):
        (site.repo / "files").mkdir(exist_ok=True)
        (site.repo / "files" / name).write_text(text)
    declared: dict[str, Any] = {"nodes": THREE, "per_node": own}
    site.declare(**declared, files={MOTD: "from here\n"})
    site.git("push", "--quiet", str(bare), "HEAD:main")
    print(site.ok("apply").stdout)
    node = lab.nodes["gpu03"]
    claims.check("it runs on gpu03", node.run("systemctl is-active reconcile-controller").stdout.strip() == "active")
    say("a push that gives it a key of its own: from now on it does the work")
    declared["ssh"] = {"identity": KEY}
    for motd in ("by the unit\n", "and again\n"):
        push(site, bare, **declared, files={MOTD: motd})
        claims.check("what is pushed is on all nodes, also on its own", moved(lab, THREE, motd), motd.strip())
    lab.nodes["gpu01"].run(f"echo by hand > {MOTD}")
    claims.check("drift is healed", moved(lab, ("gpu01",), "and again\n"))
    say("gpu03 loses its power; a push comes meanwhile")
    node.poweroff()
    push(site, bare, **declared, files={MOTD: "after the power cut\n"})
    node.poweron()
    node.wait_ready()
    claims.check("the controller came back by itself and did it", moved(lab, THREE, "after the power cut\n"))
    print(node.run(f"env {ENVIRONMENT.partition('=')[2]} {PYTHON} -m reconciler status").stdout)
    print(node.run("journalctl -q --no-pager -o cat -b -u reconcile-controller").stdout)
    node.run("systemctl disable --now reconcile-controller")
    claims.check("it ends in good order", "success" in node.run("systemctl show -p Result reconcile-controller").stdout)


def pull(claims: Claims, lab: Lab, site: Site, bare: Path) -> None:
    say("a node that pulls: gpu01, from a timer")
    units = {"reconcile-pull.service": {"content": PULL}, "reconcile-pull.timer": {"content": TIMER, **ON}}
    declared: dict[str, Any] = {"nodes": ("gpu01",), "units": units}
    push(site, bare, **declared, files={MOTD: "first\n"})
    print(site.ok("apply").stdout)
    push(site, bare, **declared, files={MOTD: "pulled\n"})
    claims.check("what is pushed comes to the node", moved(lab, ("gpu01",), "pulled\n"))
    site.replace("files:", "fles:")
    site.git("push", "--quiet", str(bare), "HEAD:main")
    node = lab.nodes["gpu01"]
    truth.wait_in(node, "journalctl -q --no-pager -o cat -u reconcile-pull | grep -q 'stays in force'", 60)
    node.run(f"echo by hand > {MOTD}")
    healed = moved(lab, ("gpu01",), "pulled\n")
    claims.check("a broken revision is told in the unit's journal, and drift healed by the one before", healed)
    print(node.run("journalctl -q --no-pager -o cat -u reconcile-pull | grep -v '^$' | tail -n 12").stdout)
    result = 'test "$(systemctl show -p Result --value reconcile-pull)" = exit-code'
    truth.wait_in(node, result, 60)
    claims.check("the unit fails, which monitoring sees", node.run(result, check=False).returncode == 0)


def main() -> int:
    claims = Claims("the controller and pull as units")
    with tempfile.TemporaryDirectory(prefix="reconcile-origin-") as place:
        bare = Path(place)
        with lab_of_own({name: bound(bare) for name in THREE}) as (lab, folder):
            site = Site.small(lab, folder, nodes=THREE)
            site.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
            controller(claims, lab, site, bare)
            pull(claims, lab, site, bare)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
