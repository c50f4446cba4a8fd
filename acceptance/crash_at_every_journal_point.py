"""The controller dies after each of its journal records in turn, on real nodes; the next apply ends well and repeats nothing.

The number of points is counted from the journal of an apply that nobody disturbed. What is proved is read from the nodes:
rpm's history, their step records, files, units and leases; never from our journal.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from acceptance.claims import ROOT, Claims, fresh_lab, say
from lab import Lab
from tests.e2e import truth
from tests.e2e.site import GPUS, Site
from tests.e2e.test_crash import crash
from tests.e2e.truth import Nodes

SHARES = 2  # labs side by side


def undisturbed(lab: Lab, nodes: Nodes, folder: Path) -> list[str]:
    """The types of the records that an apply of three fresh nodes writes."""
    nodes.fresh(*GPUS)
    site = Site.reference(lab, folder)
    site.ok("apply")
    return [record["type"] for record in site.journal()]


def evidence(lab: Lab) -> str:
    """What the nodes themselves say."""
    machines = [lab.nodes[name] for name in GPUS]
    told = []
    for node in machines:
        records = truth.steps(node)
        states = {state: sum(1 for r in records if r["state"] == state) for state in sorted({r["state"] for r in records})}
        told.append(f"{node.name}: rpm history {truth.transactions(node)}, steps {states}")
    return "; ".join(told)


def share(which: int) -> int:
    """Every SHARES-th point, in a lab and a process of its own: exit status 0 when all of its claims hold."""
    claims = Claims(f"share {which + 1} of {SHARES}")
    with fresh_lab() as (lab, folder):
        nodes = Nodes(lab)
        types = undisturbed(lab, nodes, folder / "undisturbed")
        say(f"{len(types)} points, from the journal of an undisturbed apply; share {which + 1} of {SHARES}")
        for point, kind in list(enumerate(types, start=1))[which::SHARES]:
            try:
                crash(lab, nodes, folder / str(point), point)
                claims.check(f"point {point:3} of {len(types)}, about after {kind}", True, evidence(lab))
            except AssertionError as e:
                claims.check(f"point {point:3} of {len(types)}, about after {kind}", False, str(e)[:500])
    return claims.end()


def main() -> int:
    """All shares side by side: most of a point is waiting for nodes to boot."""
    claims = Claims("crash at every journal point of a full apply")
    running = []
    for which in range(SHARES):
        lab = {"RECONCILE_LAB_NAME": f"accept{which}", "RECONCILE_LAB_SUBNET": f"10.{94 - which}.0"}
        argv = (sys.executable, "-m", "acceptance.crash_at_every_journal_point", str(which))
        running.append(subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **lab}, stdout=subprocess.PIPE, text=True))
    with ThreadPoolExecutor(SHARES) as readers:
        texts = list(readers.map(_shown, running))
    points = {int(n) for text in texts for n in re.findall(r"^ok     point +(\d+) of", text, re.MULTILINE)}
    total = {int(n) for text in texts for n in re.findall(r"^== (\d+) points", text, re.MULTILINE)}
    claims.check("every share counts the same points", len(total) == 1, sorted(total))
    claims.check(
        "each point was crashed at, and every claim of it holds", points == set(range(1, max(total, default=0) + 1)), len(points)
    )
    claims.check("no share failed", all(process.returncode == 0 for process in running), [p.returncode for p in running])
    return claims.end()


def _shown(process: subprocess.Popen[str]) -> str:
    """What a share prints, shown as it comes, and all of it at the end."""
    kept = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        kept.append(line)
    process.wait()
    return "".join(kept)


if __name__ == "__main__":
    sys.exit(share(int(sys.argv[1])) if len(sys.argv) > 1 else main())
