"""Ten minutes of a controller at rest: its CPU and memory with three lab nodes and with 100 replayed ones, and what a node pays.

A look at the nodes each minute, ten times as often as the default. CPU is the kernel's count of the process and its children.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from acceptance.claims import Claims, say
from benchmarks.controller import Steady, lab_steady, replayed_steady
from lab import Lab

SECONDS, REPLAYED = 600.0, 100
OF_CORE, MEMORY, OF_NODE, OF_MANY = 1.0, 200.0, 0.2, 20.0  # percent, MB, percent, percent: the figures


def told(claims: Claims, found: Steady, limit: float) -> None:
    print(
        f"watched for {found.wall:.0f} s, {found.looks} looks at the nodes; memory {found.rss:.0f} MB, at most {found.peak:.0f} MB"
    )
    claims.check(f"it looked at the nodes all the time: {found.looks} looks", found.looks >= found.wall / 75 - 1)
    claims.check(f"controller under {limit:g} % of a core", found.share < limit, f"{found.share:.2f} %")
    claims.check(f"and {MEMORY:g} MB", found.peak < MEMORY, f"{found.peak:.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    wanted = parser.parse_args()
    claims = Claims(f"{wanted.seconds:g} s of steady state")
    os.environ.setdefault("RECONCILE_LAB_NAME", "accept")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.94.0")
    lab = Lab.from_environment()
    try:
        lab.up(nodes=3)
        with tempfile.TemporaryDirectory() as folder:
            say("three lab nodes, as the reference site declares them")
            found = lab_steady(lab, Path(folder), wanted.seconds)
            told(claims, found, OF_CORE)
            for name, share in found.nodes.items():
                claims.check(f"{name} at most {OF_NODE:g} % of a core", share <= OF_NODE, f"{share:.3f} %")
            say(f"{REPLAYED} replayed nodes: one node's recording under {REPLAYED} names")
            told(claims, replayed_steady(Path(folder), REPLAYED, wanted.seconds / 3), OF_MANY)
    finally:
        lab.down()
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
