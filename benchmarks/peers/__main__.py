"""python -m benchmarks.peers [--nodes 1,8,32] [--round-trips 0,10] [--repeats 5,3,2] [--out DIR] [--report]

reconcile beside ansible-core, Mitogen and pyinfra: the same 15 resources and 20 facts of converged nodes, by every tool in turn.
Installs the peers into an environment of their own, boots a lab (STAND-IN), proves that all tools see the same, then measures.
Writes peers.json (every call), peers.md, peers.svg and peers.png into DIR (default benchmarks/results); --report writes the last
three again from peers.json. Needs root, Debian 12, Python 3.12 or newer beside ours, and where pip's configuration leads to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers import report, work
from benchmarks.peers.installed import Peers, peers
from benchmarks.peers.measure import Unequal, equal, rows
from benchmarks.peers.site import Site, site
from benchmarks.peers.tools import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PLOT = Path(__file__).with_name("plot.py")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=_numbers, default=(1, 8, 32))
    parser.add_argument("--round-trips", type=_numbers, default=(0, 10), metavar="MS,...")
    parser.add_argument("--repeats", type=_numbers, default=(5, 3, 2), help="of each number of nodes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="measure nothing: table and plot of peers.json in DIR")
    asked = parser.parse_args()
    if len(asked.repeats) != len(asked.nodes) or min(*asked.nodes, *asked.repeats) < 1 or max(asked.nodes) > 80:
        parser.error("--nodes and --repeats: as many numbers each, from 1; at most 80 nodes")
    return asked


def _told(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip()


def conditions(installed: Peers) -> dict[str, Any]:
    """Where and with what it was measured."""
    base = _told("git", "merge-base", "HEAD", "main")
    cpu = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return {
        # what is on main by its name, what is on top by its words: a rebase changes the names of these
        "commit": base,
        "ahead": _told("git", "log", "--format=%s", f"{base}..HEAD", "--", "reconciler").splitlines(),
        "changed": _told("git", "status", "--porcelain", "--", "reconciler", "benchmarks/peers"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cores": os.cpu_count(),
        "processor": cpu.partition(":")[2].strip(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "versions": {**installed.versions(), "our python": platform.python_version(), "openssh": _told("ssh", "-V")},
        "stand_in": "lab nodes on the same machine stand for servers; a relay stands for the distance to them",
    }


def measure(asked: argparse.Namespace, installed: Peers) -> None:
    """Everything, kept after each call: a run that is cut off leaves what it has."""
    kept: dict[str, Any] = {"conditions": conditions(installed), "repeats": dict(zip(asked.nodes, asked.repeats, strict=True))}
    kept["work"] = {"tasks": work.TASKS, "resources": work.RESOURCES, "facts": work.FACTS, "drift": [t for _, t in work.DRIFT]}
    with site(installed, max(asked.nodes)) as found:
        kept["equality"] = equal(found, found.tools(1))
        kept["round_trips"] = {ms: _measured(found, ms) for ms in asked.round_trips}
        kept["rows"] = []
        for nodes, repeats in zip(asked.nodes, asked.repeats, strict=True):
            tools = found.tools(nodes)
            for ms in asked.round_trips:
                for row in rows(found, tools, ms, repeats):
                    kept["rows"].append(row.flat())
                    print(json.dumps(row.flat()), file=sys.stderr, flush=True)
                    (asked.out / "peers.json").write_text(report.as_json(kept))


def _measured(found: Site, ms: int) -> float:
    found.distance.ask(f"delay {ms}")
    trips = sorted(found.distance.round_trips())
    return round(trips[len(trips) // 2], 3)


def main() -> int:
    asked = _arguments()
    os.environ.setdefault("RECONCILE_LAB_NAME", "peers")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.89.0")
    installed = peers()
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        if not asked.report:
            measure(asked, installed)
    except Unequal as e:
        print(f"the tools did not do the same work: {e}", file=sys.stderr)
        return 1
    raw = asked.out / "peers.json"
    text = report.markdown(json.loads(raw.read_text()))
    (asked.out / "peers.md").write_text(text)
    subprocess.run((installed.program("python"), str(PLOT), str(raw), str(raw.with_suffix(""))), check=True)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
