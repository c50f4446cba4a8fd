"""The controller dies after each of its journal records in turn, on real nodes; the next apply ends well and repeats nothing.

The number of points is counted from the journal of an apply that nobody disturbed. What is proved is read from the nodes:
rpm's history, their step records, files, units and leases; never from our journal.
"""

from __future__ import annotations

import sys
from pathlib import Path

from acceptance.claims import Claims, fresh_lab, say
from lab import Lab
from tests.e2e import truth
from tests.e2e.site import GPUS, Site
from tests.e2e.test_crash import crash
from tests.e2e.truth import Nodes


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


def main() -> int:
    claims = Claims("crash at every journal point of a full apply")
    with fresh_lab() as (lab, folder):
        nodes = Nodes(lab)
        types = undisturbed(lab, nodes, folder / "undisturbed")
        say(f"{len(types)} points, from the journal of an undisturbed apply")
        for point, kind in enumerate(types, start=1):
            try:
                crash(lab, nodes, folder / str(point), point)
                claims.check(f"point {point:2} of {len(types)}, about after {kind}", True, evidence(lab))
            except AssertionError as e:
                claims.check(f"point {point:2} of {len(types)}, about after {kind}", False, str(e)[:500])
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
