"""A driver plan waits for a person: it is told, shown in full, refused where it does not fit any more, approved, applied exactly.

Nodes whose plan has no driver change go on meanwhile. The restart and the loaded version are asked of the nodes.
"""

from __future__ import annotations

import json
import sys

from acceptance.claims import Claims, fresh_lab, say
from lab import Lab
from lab.shell import wait_for
from tests.e2e import truth
from tests.e2e.origin import Origin, controlled, origin, server
from tests.e2e.site import Result, Site

THREE = ("gpu01", "gpu02", "gpu03")
OLD, NEW = "580.82.07", "580.95.05"
MOTD = "/etc/motd"


def declare(site: Site, driver: str, motd: str) -> str:
    rollout = {"canary": "gpu01", "maxUnavailable": "1", "approve": ["GpuDriver"]}
    return site.declare(nodes=THREE, files={MOTD: motd}, driver=driver, rollout=rollout)


def loaded(lab: Lab) -> list[str]:
    """The driver that each node's nvidia-smi reports."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1 | sort -u"
    return [lab.nodes[name].run(query, check=False).stdout.strip() for name in THREE]


def boots(lab: Lab) -> list[str]:
    return [lab.nodes[name].run("cat /proc/sys/kernel/random/boot_id").stdout.strip() for name in THREE]


def waiting(site: Site) -> Result:
    """`reconcile approve` without a name, as a person reads it."""
    found = site.ok("approve")
    print(found.stdout)
    return found


def plan_id(site: Site) -> str:
    waits = json.loads(site.ok("approve", "--json").stdout)["plan"]
    return str(waits["id"]) if waits else ""


def approved(claims: Claims, site: Site, plan: str) -> None:
    done = site.run("approve", plan)
    print(done.text, end="")
    claims.check("the approval is taken", done.code == 0)
    claims.check("Ready", site.run("wait", "--for", "Ready", "--timeout", "240s").code == 0)


def first_driver(claims: Claims, lab: Lab, site: Site, found: Origin) -> None:
    say("the first driver")
    declare(site, OLD, "one\n")
    pushed = found.push()
    print(pushed.terminal)
    claims.check("the push is taken", pushed.code == 0)
    claims.check("its terminal says that the plan waits, and the command", "reconcile approve " in pushed.terminal)
    print(site.run("status").stdout)
    approved(claims, site, plan_id(site))
    claims.check("the driver is loaded", loaded(lab) == [OLD] * 3, loaded(lab))


def shown(claims: Claims, lab: Lab, site: Site, found: Origin, before: list[str]) -> str:
    """The id of the plan that waits for the newer driver."""
    say(f"driver {OLD} -> {NEW} is pushed")
    declare(site, NEW, "one\n")
    print(found.push().terminal)
    first, told = plan_id(site), waiting(site).stdout
    claims.check("the plan that waits is shown: packages", f"packages {OLD}" in told and NEW in told)
    claims.check("... what is loaded, and the restart", f"loaded {OLD}" in told and "until the reboot" in told)
    status = site.run("status").stdout
    claims.check("the status names it", first in status and "waits for approval" in status)
    claims.check("nothing was done", loaded(lab) == [OLD] * 3 and boots(lab) == before)
    return first


def stale(claims: Claims, site: Site, first: str) -> None:
    """Approving a plan that does not fit any more carries nothing out; a new one waits."""
    done = site.run("approve", first)
    print(done.text, end="")
    wait_for(lambda: plan_id(site) not in ("", first), "a new plan that waits", 60, 0.2)
    told = done.code != 0 or f"plan {first} was approved and does not fit any more" in site.ok("events").stdout
    claims.check("it is said that the older one does not fit any more", told, f"exit {done.code}")
    claims.check("a new plan waits", plan_id(site) != first, plan_id(site))


def carried_out(claims: Claims, lab: Lab, site: Site, before: list[str]) -> None:
    say("the plan that waits now is approved")
    second = plan_id(site)
    waiting(site)
    approved(claims, site, second)
    print(site.run("status").stdout)
    claims.check("the new driver is loaded on every node", loaded(lab) == [NEW] * 3, loaded(lab))
    claims.check("each was restarted", all(a != b for a, b in zip(before, boots(lab), strict=True)))
    claims.check("what was by hand is as declared", truth.text(lab.nodes["gpu02"], MOTD) == "one\n")
    carried = [r["plan"] for r in site.journal() if r["type"] == "apply-started" and r["saved"]]
    claims.check("what was applied is the plan that was approved", carried[-1:] == [second], carried)
    who = [(r["plan"], r["by"]) for r in site.journal() if r["type"] == "approved"]
    claims.check("the journal has who approved", len(who) >= 2 and all(by for _, by in who), who)
    claims.check("nothing waits any more", "no plan waits" in site.ok("approve").stdout)


def main() -> int:
    claims = Claims("a driver plan waits, is shown, approved, applied")
    with fresh_lab() as (lab, folder), server(folder / "ssh") as sshd:
        site = Site.small(lab, folder, nodes=THREE)
        found = origin(site, folder, sshd)
        with controlled(site, str(found.bare), "--interval", "10m", "--drift-interval", "5s"):
            first_driver(claims, lab, site, found)
            before = boots(lab)
            first = shown(claims, lab, site, found, before)
            say("something that the plan touches moves: the approval of the older plan carries nothing out")
            lab.nodes["gpu02"].run(f"echo by hand > {MOTD}")
            stale(claims, site, first)
            claims.check("nothing was done", loaded(lab) == [OLD] * 3 and boots(lab) == before)
            carried_out(claims, lab, site, before)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
