"""What the main job costs the controller: python -m benchmarks.cluster [--nodes 3,32] [--runs 5] [--json FILE]

Boots a lab and runs the real command line, each call a fresh process (cold: imports, connects, logins). CPU and memory are
the kernel's (wait4), bytes are those of the lab's network interfaces, so SSH and TCP are counted. Wall times are of a machine
that also plays the nodes: an upper bound. `per node` is the slope against the smallest cluster, `fixed` what remains.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import Lab
from tests.e2e import truth
from tests.e2e.site import ROOT, Site

HELP_RUNS = 21


@dataclass(frozen=True)
class Figure:
    """Medians over the runs of one command. Seconds, MB, and KB a node; `spread` is the slowest run's wall time."""

    what: str
    nodes: int
    wall: float
    spread: float
    cpu: float
    rss: float
    received: float
    sent: float


def _counters(bridge: str) -> tuple[int, int]:
    """Bytes that nodes sent to this machine, and that it sent to them, so far."""
    statistics_ = Path("/sys/class/net") / bridge / "statistics"
    return int((statistics_ / "rx_bytes").read_text()), int((statistics_ / "tx_bytes").read_text())


def _call(site: Site, bridge: str, words: tuple[str, ...]) -> tuple[float, float, float, float, float]:
    """Wall, CPU, RSS in MB, KB received and sent of one call, which has to end with 0."""
    environment = {**os.environ, "RECONCILE_STATE_DIR": str(site.state), "PYTHONPATH": str(ROOT)}
    before, began = _counters(bridge), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", *words],
        cwd=site.repo,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall, after = time.perf_counter() - began, _counters(bridge)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.stderr.read().decode() if process.stderr else ""
    received, sent = ((b - a) / 1000 for a, b in zip(before, after, strict=True))
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, received, sent


def measure(what: str, site: Site, words: tuple[str, ...], runs: int, prepare: Callable[[], None] | None = None) -> Figure:
    """One figure; `prepare` runs before each call and is not counted."""
    nodes = len(site.lab.nodes)
    rows = []
    for _ in range(runs):
        if prepare:
            prepare()
        rows.append(_call(site, site.lab.config.bridge, words))
    wall, cpu, rss, received, sent = (statistics.median(column) for column in zip(*rows, strict=True))
    return Figure(what, nodes, wall, max(r[0] for r in rows), cpu, rss, received / nodes, sent / nodes)


def cluster(lab: Lab, folder: Path, runs: int) -> list[Figure]:
    """The main job on the lab as it is: everything to do, apply, nothing to do."""
    site = Site.reference(lab, folder)
    names = [name for name in lab.nodes if name.startswith("gpu")]
    last = int(names[-1].removeprefix("gpu"))
    site.replace("gpu[01-03]", f"gpu[01-{last:02d}]")
    site.replace(f"{lab.config.subnet}.[11-13]", f"{lab.config.subnet}.[11-{10 + last}]")
    site.replace("maxUnavailable: 2", "maxUnavailable: 100%")

    def anew() -> None:
        truth.reset([lab.nodes[name] for name in names])

    return [
        measure("plan, everything to do", site, ("plan",), 1 if last > 8 else runs, anew),
        measure("apply, everything to do", site, ("apply",), 1 if last > 8 else runs, anew),
        measure("plan, nothing to do", site, ("plan",), runs),
        measure("apply, nothing to do", site, ("apply",), runs),
    ]


def help_time() -> tuple[float, float]:
    """Seconds of a bare interpreter and of `reconcile --help`, medians, interleaved."""
    script = str(Path(sys.executable).parent / "reconcile")
    bare: list[float] = []
    told: list[float] = []
    for _ in range(HELP_RUNS):
        for argv, kept in (([sys.executable, "-c", "pass"], bare), ([script, "--help"], told)):
            began = time.perf_counter()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
            kept.append(time.perf_counter() - began)
    return statistics.median(bare), statistics.median(told)


def table(figures: list[Figure]) -> list[str]:
    """The figures as a Markdown table, and the slope of CPU between the smallest and the largest cluster."""
    out = [
        "| command | nodes | wall s (slowest) | controller CPU s | CPU ms a node | RSS MB | received KB a node | sent KB a node |"
    ]
    out.append("|---|---|---|---|---|---|---|---|")
    for f in figures:
        cells = (
            f.what,
            f"{f.nodes}",
            f"{f.wall:.2f} ({f.spread:.2f})",
            f"{f.cpu:.2f}",
            f"{f.cpu / f.nodes * 1000:.0f}",
            f"{f.rss:.0f}",
            f"{f.received:.1f}",
            f"{f.sent:.1f}",
        )
        out.append(f"| {' | '.join(cells)} |")
    for what in dict.fromkeys(f.what for f in figures):
        same = sorted((f for f in figures if f.what == what), key=lambda f: f.nodes)
        if len(same) > 1:
            slope = (same[-1].cpu - same[0].cpu) / (same[-1].nodes - same[0].nodes)
            out.append(
                f"{what}: {slope * 1000:.1f} ms controller CPU a further node, {same[0].cpu - slope * same[0].nodes:.2f} s fixed"
            )
    return out


def main() -> int:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="3,32", help="cluster sizes (default 3,32)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    wanted = parser.parse_args()
    os.environ.setdefault("RECONCILE_LAB_NAME", "bench")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.95.0")
    bare, told = help_time()
    print(
        f"reconcile --help {told * 1000:.0f} ms, a bare interpreter {bare * 1000:.0f} ms: adds {(told - bare) * 1000:.0f} ms",
        flush=True,
    )
    figures: list[Figure] = []
    for size in (int(n) for n in wanted.nodes.split(",")):
        lab = Lab.from_environment()
        try:
            lab.up(nodes=size)
            with tempfile.TemporaryDirectory() as folder:
                figures += cluster(lab, Path(folder), wanted.runs)
        finally:
            lab.down()
    print("\n".join(table(figures)))
    if wanted.json:
        kept = {"help": {"bare": bare, "help": told}, "figures": [asdict(f) for f in figures]}
        wanted.json.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
