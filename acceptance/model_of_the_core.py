"""Whatever edits, drifts, crashes and lost leases come: one apply afterwards converges, and the next one does nothing.

`--examples N` sequences (default 1000) from `--seed S` (default: a new one, printed).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from acceptance.claims import Claims, say
from tests.simulated.acts import FAULTS
from tests.simulated.play import Tally
from tests.simulated.search import search

STAND_IN = "STAND-IN: nodes, systemd, disks, links and clocks are simulated; controller and node program are real"


def shown(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    asked = parser.parse_args()
    claims = Claims("model of the core", STAND_IN)
    say(f"{asked.examples} sequences from seed {asked.seed}")
    tally, found, began = Tally(), "none", time.monotonic()
    try:
        search(asked.examples, asked.seed, tally)
    except AssertionError as e:
        found = "\n".join([str(e), *getattr(e, "__notes__", [])])
    print(f"sequences {tally.sequences}, in {time.monotonic() - began:.0f} s; steps on nodes {tally.steps}")
    print(f"acts: {shown(tally.acts)}")
    print(f"faults that struck: {shown(tally.faults)}")
    exits = ", ".join(f"{'killed' if code < 0 else code}: {n}" for code, n in sorted(tally.exits.items()))
    print(f"ends of applies: {exits}")
    missing = set(FAULTS) - set(tally.faults)
    claims.check("every sequence ended converged, with an empty second apply", found == "none", found)
    claims.check("as many sequences were played as asked for", tally.sequences >= asked.examples, tally.sequences)
    claims.check("every kind of fault struck", asked.examples < len(FAULTS) * 10 or not missing, sorted(missing) or len(FAULTS))
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
