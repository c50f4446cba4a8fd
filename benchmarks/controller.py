"""What a controller costs in steady state: python -m benchmarks.controller [--seconds 300] [--drift-interval 60s] [--replayed 100]

Three lab nodes as the reference site declares them, everything as declared; then the recording of one of them under a hundred
names (no network, no SSH: what is left is planning and our own bookkeeping). CPU and memory are the kernel's (/proc), of the
controller's process; a node's is of the node program and what it ran there, without sshd. `--drift-interval` is shorter than
the default of 10 min so that several looks are seen in a short time: what one look costs is told as well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import Lab, LabNode
from reconciler.apply.statedir import StateDir
from reconciler.commands.controller import as_data
from reconciler.controller.process import Shown, controller
from reconciler.controller.settings import Settings
from reconciler.render import data
from reconciler.transport.replay import ReplayTransport
from tests.e2e.site import ROOT, Site

TICKS = os.sysconf("SC_CLK_TCK")
PROGRAM = "for p in $(pgrep python3); do cut -d' ' -f14-17 /proc/$p/stat; done"


@dataclass(frozen=True)
class Used:
    """CPU seconds, and MB of memory now and at most."""

    cpu: float
    rss: float
    peak: float


def used(pid: int) -> Used:
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    rss, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Used(sum(map(int, after[11:15])) / TICKS, rss, peak)  # with children that were waited for: git


def on_node(node: LabNode) -> float:
    """CPU seconds of the node program and of what it ran."""
    return sum(sum(map(int, line.split())) for line in node.run(PROGRAM).stdout.splitlines()) / TICKS


def turns(state: Path) -> int:
    """How many turns are over, as the controller's events say."""
    argv = [sys.executable, "-m", "reconciler", "events", "--json", "--state-dir", str(state)]
    told = subprocess.run(argv, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}).stdout
    return sum(1 for line in told.splitlines() if json.loads(line).get("event") == "turn-ended")


@dataclass(frozen=True)
class Steady:
    """A controller watched at rest: seconds, looks at the nodes, CPU as % of a core, CPU ms a look, MB, and % of a core a node."""

    wall: float
    looks: int
    share: float
    look: float | None
    rss: float
    peak: float
    nodes: Mapping[str, float]

    def row(self, what: str) -> str:
        node = f"{max(self.nodes.values()):.2f} %" if self.nodes else "-"
        look = "-" if self.look is None else f"{self.look:.0f} ms"
        memory = f"{self.rss:.0f} | {self.peak:.0f}"
        return f"| {what} | {self.wall:.0f} s | {self.looks} | {self.share:.2f} % | {look} | {memory} | {node} |"


def steady(process: subprocess.Popen[bytes], state: Path, seconds: float, nodes: list[LabNode]) -> Steady:
    """The controller watched for so long after it came to rest."""
    before, there, looks, began = used(process.pid), [on_node(n) for n in nodes], turns(state), time.monotonic()
    time.sleep(seconds)
    wall, after = time.monotonic() - began, used(process.pid)
    looks = turns(state) - looks
    cpu = after.cpu - before.cpu
    each = {n.name: (on_node(n) - was) / wall * 100 for n, was in zip(nodes, there, strict=True)}
    return Steady(wall, looks, cpu / wall * 100, cpu / looks * 1000 if looks else None, after.rss, after.peak, each)


def lab_steady(lab: Lab, folder: Path, seconds: float, drift_interval: str = "60s", interval: str = "60s") -> Steady:
    """Three lab nodes; leaves the recording of one of them in `folder` for `replayed_steady`."""
    site = Site.reference(lab, folder)
    site.ok("apply")
    argv = [sys.executable, "-m", "reconciler", "controller", "--repository", str(site.repo), "--state-dir", str(site.state)]
    argv += ["--drift-interval", drift_interval, "--interval", interval]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        _rest(site.state)
        found = steady(process, site.state, seconds, [lab.nodes[name] for name in ("gpu01", "gpu02", "gpu03")])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    site.ok("plan", "--record", str(folder / "recorded"))
    return found


def _rest(state: Path) -> None:
    """Wait until the first turn is over."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            if turns(state):
                return
        except subprocess.CalledProcessError:
            pass  # it does not listen yet
        time.sleep(0.2)
    raise SystemExit("the controller's first turn never ended")


def replayed_steady(folder: Path, count: int, seconds: float, drift_interval: str = "60s", interval: str = "60s") -> Steady:
    """The recording of one node under many names, in a site that observes only."""
    recorded, names = folder / "recorded", [f"gpu{n:03d}" for n in range(1, count + 1)]
    found = json.loads((recorded / "gpu01.json").read_text())
    for name in names:
        (recorded / f"{name}.json").write_text(json.dumps({**found, "node": name}))
    site = Site(Lab.from_environment(), folder / "repo", folder / "many")
    text = (site.repo / "site.yaml").read_text().replace("gpu[01-03]", f"gpu[{names[0][3:]}-{names[-1][3:]}]")
    text = text.replace(f"{site.lab.config.subnet}.[11-13]", f"10.200.0.[1-{len(names)}]")
    text = text.replace("canary: gpu01", "canary: gpu001").replace("\n  nodes:", "\n  policy: {default: observe}\n  nodes:")
    (site.repo / "site.yaml").write_text(text)
    site.commit()
    argv = [sys.executable, "-m", "benchmarks.controller", "--child", str(site.repo), str(site.state), str(recorded)]
    argv += ["--drift-interval", drift_interval, "--interval", interval]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        _rest(site.state)
        return steady(process, site.state, seconds, [])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def child(wanted: argparse.Namespace) -> int:
    """The real controller over recordings."""
    from reconciler.model.durations import seconds

    repo, state, recorded = wanted.child
    spans = (seconds(wanted.interval) or 60.0, seconds(wanted.drift_interval) or 600.0)
    settings = Settings(repo, interval=spans[0], drift_interval=spans[1])
    place, transport = StateDir(Path(state)), ReplayTransport(Path(recorded))
    with controller(settings, place, transport, Shown(as_data, data.plan), lambda message: None) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.loop.end())
        process()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--interval", default="60s")
    parser.add_argument("--drift-interval", default="60s")
    parser.add_argument("--replayed", type=int, default=100)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child:
        return child(wanted)
    os.environ.setdefault("RECONCILE_LAB_NAME", "bench")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.95.0")
    lab = Lab.from_environment()
    print("| what | watched | looks | CPU of a core | CPU a look | RSS MB | peak MB | busiest node |\n" + "|---" * 8 + "|")
    try:
        lab.up(nodes=3)
        with tempfile.TemporaryDirectory() as folder:
            spans = (wanted.seconds, wanted.drift_interval, wanted.interval)
            print(lab_steady(lab, Path(folder), *spans).row("3 lab nodes"), flush=True)
            many = replayed_steady(Path(folder), wanted.replayed, *spans)
            print(many.row(f"{wanted.replayed} replayed nodes"), flush=True)
    finally:
        lab.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
