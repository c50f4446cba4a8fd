"""A shared environment: one node builds in a mount that all see, damage is healed once, and what any node uses stays.

The mount is one folder of this machine, bound into every node at /opt/ai/env (STAND-IN for a network file system).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from acceptance import environments
from acceptance.claims import STAND_IN, Claims, lab_of_own, say
from acceptance.environments import PYTHON, ROOT, SITE_PACKAGES, User, builds, declare, linked, lock
from lab import Lab
from tests.e2e.site import Site

NODES = ("gpu01", "gpu02", "gpu03")
BUILDER = "gpu01"


def files(version: str) -> dict[str, dict[str, str]]:
    return {"alpha": {"alpha.py": f"VERSION = {version!r}\n"}, "beta": {"beta.py": ""}}


def versions(lab: Lab) -> dict[str, str]:
    """What a program of the environment runs with on each node, asked of Python itself."""
    command = f"{PYTHON} -c 'import alpha; print(alpha.VERSION)'"
    return {name: lab.nodes[name].run(command, check=False).stdout.strip() for name in NODES}


def records(lab: Lab) -> Mapping[str, int]:
    """How many steps each node ever carried out."""
    return {name: int(lab.nodes[name].run("ls /var/lib/reconcile/steps 2>/dev/null | wc -l").stdout) for name in NODES}


def one_builds(claims: Claims, lab: Lab, site: Site) -> None:
    say("nothing is there: gpu01 builds, gpu02 and gpu03 see it")
    planned = site.run("plan")
    print(planned.stdout)
    claims.check(
        "the plan changes one node and holds two", planned.verdict.startswith("1 change on 1 node, 2 held"), planned.verdict
    )
    first = site.run("apply")
    print(first.text)
    claims.check("one apply ends with 0: who waited sees the build", first.code == 0, f"exit {first.code}")
    claims.check("every node runs it", set(versions(lab).values()) == {"1.0"}, versions(lab))
    seen, one = {n: builds(lab.nodes[n]) for n in NODES}, [linked(lab.nodes[BUILDER])]
    claims.check("one build, on one mount", seen == dict.fromkeys(NODES, one), seen)
    steps = records(lab)
    claims.check("only the builder carried out steps", [n for n, k in steps.items() if k] == [BUILDER], steps)
    claims.check("a second apply changes nothing", "0 changes" in site.ok("apply").stdout and records(lab) == steps)


def damage(claims: Claims, lab: Lab, site: Site) -> None:
    say("somebody on gpu03 removes a package from the shared build, while a process of gpu02 uses it")
    before = linked(lab.nodes[BUILDER])
    user = User(lab.nodes["gpu02"])
    user.ask("__import__('alpha').VERSION")
    lab.nodes["gpu03"].run(f"rm -r {ROOT}/t/{SITE_PACKAGES}/beta*")
    drift = site.run("drift")
    print(drift.stdout)
    claims.check("it is one drift, on the builder", drift.verdict == "drift: 1 resource", drift.verdict)
    healed = site.run("apply")
    after = builds(lab.nodes["gpu03"])
    claims.check("healed by one apply", healed.code == 0, f"exit {healed.code}")
    claims.check("as one new build", after == [before, f"{before[:-1]}2"], after)
    claims.check("the process of gpu02 goes on", user.ask("__import__('alpha').__file__").endswith(f"{SITE_PACKAGES}/alpha.py"))
    claims.check(
        "a second apply heals nothing again", "0 changes" in site.ok("apply").stdout and builds(lab.nodes["gpu03"]) == after
    )
    user.end()


def used_elsewhere(claims: Claims, lab: Lab, site: Site, house: Path) -> None:
    say("one build is kept; a process of gpu02, which builds nothing, uses an old one")
    old = linked(lab.nodes[BUILDER])
    user = User(lab.nodes["gpu02"], f"{ROOT}/t.d/{old}/bin/python")
    pid = user.pid
    site.replace("keepEnvironments: 3", "keepEnvironments: 1")
    for version in ("2.0", "3.0"):
        lock(site, house, files(version), version)
        site.ok("apply")
    claims.check("two builds later the old one is there", old in builds(lab.nodes[BUILDER]), builds(lab.nodes[BUILDER]))
    shown = site.ok("env", "list")
    print(shown.stdout)
    claims.check("env list says who uses it", f"used by pid {pid}" in shown.stdout)
    cleaned = site.ok("env", "gc", "t")
    print(cleaned.text)
    claims.check("env gc leaves it", old in builds(lab.nodes[BUILDER]), builds(lab.nodes[BUILDER]))
    lab.nodes["gpu02"].cut()
    refused = site.run("env", "gc", "t")
    print(refused.stderr)
    told = refused.code == 1 and "gpu02 sees the builds" in refused.text
    claims.check("with gpu02 cut off nothing is removed, and why is said", told)
    lab.nodes["gpu02"].heal()
    lab.nodes["gpu02"].wait_ready()
    claims.check("the process lives", lab.nodes["gpu02"].run(f"kill -0 {pid}", check=False).returncode == 0, f"pid {pid}")
    lab.nodes["gpu02"].run(f"kill {pid}")
    site.ok("env", "gc", "t")
    claims.check(
        "once it has ended it goes", builds(lab.nodes[BUILDER]) == [linked(lab.nodes[BUILDER])], builds(lab.nodes[BUILDER])
    )


def no_mount(claims: Claims, lab: Lab, site: Site, house: Path) -> None:
    say("gpu03 has lost the mount, and has a folder of its own below it")
    lab.nodes["gpu03"].run(f"umount {ROOT}")
    found = site.run("plan")
    print(found.stdout)
    claims.check("it is held, not built", found.verdict.startswith("0 changes, 1 held"), found.verdict)
    claims.check("and why is said", f"nothing is mounted at {ROOT} on this node" in found.stdout)
    site.run("apply")
    claims.check("nothing was made there", lab.nodes["gpu03"].run(f"ls -A {ROOT}").stdout == "")
    say("the builder has lost it: nobody builds")
    lab.nodes[BUILDER].run(f"umount {ROOT}")
    lock(site, house, files("4.0"), "4.0")
    found = site.run("apply")
    print(found.stdout)
    claims.check("apply ends with 2: held", found.code == 2, f"exit {found.code}")
    words = f"{BUILDER} builds it for all, and is held there: environments are shared, and nothing is mounted"
    claims.check("gpu02 says what keeps the builder", words in site.run("plan").stdout)
    claims.check("nothing was made on the builder's own disk", lab.nodes[BUILDER].run(f"ls -A {ROOT}").stdout == "")


def builder_away(claims: Claims, lab: Lab, site: Site) -> None:
    say("the builder cannot be reached")
    lab.nodes[BUILDER].cut()
    found = site.run("plan")
    print(found.stdout)
    claims.check("gpu02 is held and says why", f"{BUILDER} builds it for all, and could not be asked" in found.stdout)
    claims.check("plan ends with 4", found.code == 4, f"exit {found.code}")
    lab.nodes[BUILDER].heal()
    lab.nodes[BUILDER].wait_ready()


def main() -> int:
    claims = Claims("a shared environment has one builder, and every node's users", f"{STAND_IN}; the mount is a bound folder")
    with tempfile.TemporaryDirectory(prefix="reconcile-shared-") as place:
        house, share = Path(place) / "wheels", Path(place) / "env"
        house.mkdir()
        share.mkdir()
        binds = f"bind={share}:{ROOT},bind-ro={house}:{environments.WHEELS}"
        with lab_of_own(dict.fromkeys(NODES, binds)) as (lab, folder):
            site = Site.small(lab, folder, nodes=NODES)
            lock(site, house, files("1.0"))
            declare(site, environmentLocation={"type": "shared", "builder": BUILDER}, keepEnvironments=3)
            one_builds(claims, lab, site)
            damage(claims, lab, site)
            used_elsewhere(claims, lab, site, house)
            no_mount(claims, lab, site, house)
            builder_away(claims, lab, site)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
