"""The published comparison with ansible-core, Mitogen and pyinfra is whole and keeps its targets. --measure: the same work, now."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acceptance.claims import ROOT, Claims, say
from benchmarks.peers import report, work
from benchmarks.peers.installed import REQUIREMENTS
from benchmarks.peers.summary import OURS, TARGETS, TOOLS, cells, ratio

RESULTS = ROOT / "benchmarks" / "results"
NODES, ROUND_TRIPS, MOST = (1, 8, 32), (0, 10), 32


def whole(claims: Claims, kept: Mapping[str, Any]) -> None:
    """Every cell, each from several repeats; what was measured is known."""
    found = {(part, *key): cell for part in work.PARTS for key, cell in cells(kept["rows"], part).items()}
    wanted = set(itertools.product(work.PARTS, TOOLS, NODES, ROUND_TRIPS))
    missing = sorted(wanted - set(found))
    claims.check("every tool was measured in both parts at every size and distance", not missing, missing or f"{len(found)} cells")
    single = sorted(key for key, cell in found.items() if cell.repeats < 2)
    claims.check("each of them several times, so that there is a spread", not single, single or f"{len(kept['rows'])} calls")
    commit = kept["conditions"]["commit"]
    ours = subprocess.run(("git", "merge-base", "--is-ancestor", commit, "HEAD"), cwd=ROOT, check=False, capture_output=True)
    clean = not kept["conditions"]["changed"]
    claims.check(
        "what was measured is known: a commit of the history, and what was on top of it",
        ours.returncode == 0 and clean,
        [commit, *kept["conditions"]["ahead"]],
    )
    versions = kept["conditions"]["versions"]
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().split() if "==" in line)
    other = {name: versions[name] for name in ("ansible-core", "mitogen", "pyinfra") if versions[name] != pinned[name]}
    claims.check(
        "the peers are the versions that are pinned", not other, other or {n: versions[n] for n in pinned if n in versions}
    )
    page = (RESULTS / "peers.md").read_text()
    claims.check("the page is what the raw results come to", page == report.markdown(kept), f"{len(page)} characters")


def same_work(claims: Claims, kept: Mapping[str, Any], nodes: int) -> None:
    """Of a run: which tools were compared, on what, and what each of them had to see."""
    said, same = kept["work"], kept["equality"]
    claims.check("15 resources and 20 facts", (said["resources"], len(said["facts"])) == (15, 20), said["tasks"])
    claims.check("all four tools were compared", tuple(same["tools"]) == TOOLS, same["tools"])
    drift = sorted(task for _, task in work.DRIFT)
    claims.check("each saw no change, then the same drift and nothing else, then no change", same["drift"] == drift, drift)
    told = {name: len(facts) for name, facts in same["facts"].items()}
    claims.check("each told the same 20 facts", bool(told) and set(told.values()) == {20}, told)
    most = max(row["nodes"] for row in kept["rows"])
    claims.check("each measured call had to show no change on every node", most == nodes, f"{len(kept['rows'])} calls")


def targets(claims: Claims, kept: Mapping[str, Any]) -> None:
    """Ratios of controller CPU a node of a plan that has nothing to do."""
    found = cells(kept["rows"], work.PLAN)
    for tool, least in TARGETS.items():
        for trip in ROUND_TRIPS:
            times = ratio(found, tool, MOST, trip)
            evidence = f"{times:.1f}x: {found[tool, MOST, trip].cpu_ms:.0f} ms to {found[OURS, MOST, trip].cpu_ms:.1f} ms"
            claims.check(f"{MOST} nodes, {trip} ms: {least:.0f}x less controller CPU a node than {tool}", times >= least, evidence)


def measured_now(claims: Claims) -> None:
    say("python -m benchmarks.peers --nodes 1 --repeats 1")
    with tempfile.TemporaryDirectory(prefix="reconcile-acceptance-") as folder:
        argv = (sys.executable, "-m", "benchmarks.peers", "--nodes", "1", "--repeats", "1", "--out", folder)
        done = subprocess.run(argv, cwd=ROOT, check=False)
        claims.check("all tools did the same work now", done.returncode == 0, f"exit {done.returncode}")
        if done.returncode == 0:
            same_work(claims, json.loads((Path(folder) / "peers.json").read_text()), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="also run the benchmark with one node (minutes, the lab, the peers)")
    asked = parser.parse_args()
    claims = Claims("peers")
    say("benchmarks/results/peers.json (python -m benchmarks.peers)")
    kept = json.loads((RESULTS / "peers.json").read_text())
    whole(claims, kept)
    same_work(claims, kept, MOST)
    targets(claims, kept)
    if asked.measure:
        measured_now(claims)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
