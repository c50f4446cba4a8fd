"""What a Python environment costs: python -m benchmarks.environments [--runs 3] [--wheelhouse DIR]

Pins torch with pip's own configuration, fetches it, and builds it on one lab node (STAND-IN: the same machine plays the node)
from a wheelhouse that is bind-mounted read-only. A build's parts are the node's own figures, from the step's record. Wall times
are upper bounds on a machine that does other things too. Needs root, uv and about 3 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Lab, LabNode
from reconciler.pinning.tools import uv
from tests.e2e import truth
from tests.e2e.site import ROOT

MANIFEST = """apiVersion: reconcile/v1
kind: Versions
metadata: {{name: bench}}
spec: {{python: 3.11, environments: {{torch: {{packages: {{torch: 2.13.0+cpu{more}}}}}}}}}
---
apiVersion: reconcile/v1
kind: Cluster
metadata: {{name: bench}}
spec:
  versions: bench
  packageManager: dnf
  ssh: {{identity: {identity}, knownHosts: known_hosts}}
  mirrors: {{wheels: /srv/wheels}}
  environments: [torch]
  nodes: {{gpu01: {{address: {address}}}}}
"""


class Desk:
    """A repository of manifests and a controller."""

    def __init__(self, folder: Path, lab: Lab, house: Path) -> None:
        self.repo, self.state, self.lab, self.house = folder / "repo", folder / "state", lab, house
        self.repo.mkdir()

    def declare(self, address: str, more: str = "") -> None:
        text = MANIFEST.format(more=more, identity=self.lab.identity, address=address)
        (self.repo / "site.yaml").write_text(text)
        (self.repo / "known_hosts").write_text(self.lab.known_hosts.read_text())
        self.call("pin", "--environment", "torch")
        self.call("fetch", "--to", str(self.house))
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.net")
        for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "bench")):
            subprocess.run(("git", *words), cwd=self.repo, check=True)

    def call(self, *words: str) -> float:
        """Wall seconds of one call, which has to end with 0."""
        environment = {**os.environ, "RECONCILE_STATE_DIR": str(self.state), "PYTHONPATH": str(ROOT)}
        began = time.perf_counter()
        subprocess.run((sys.executable, "-m", "reconciler", *words), cwd=self.repo, env=environment, check=True, stdout=sys.stderr)
        return time.perf_counter() - began


def _told(name: str, seconds: list[float], note: str = "") -> None:
    print(f"| {name} | {statistics.median(seconds):.1f} | {min(seconds):.1f} | {max(seconds):.1f} | {note} |", flush=True)


def _parts(node: LabNode) -> str:
    """Of the last build: what each part took, by the node itself."""
    builds = [s for s in truth.steps(node) if s["title"] == "build-environment"]
    return ", ".join(builds[-1]["results"][0]["out"].splitlines())


def _step(node: LabNode, title: str) -> float:
    return float([s for s in truth.steps(node) if s["title"] == title][-1]["results"][0]["seconds"])


@contextmanager
def _node(house: Path) -> Iterator[tuple[Lab, LabNode]]:
    lab = Lab.from_environment()
    binds = f"bind-ro={house}:/srv/wheels,bind-ro={uv()}:/usr/local/bin/uv"
    lab.up(nodes=0, debian=0, options={"gpu01": f"mem=6G,disk=host,{binds}"})
    try:
        yield lab, lab.nodes["gpu01"]
    finally:
        lab.down()


def measure(desk: Desk, node: LabNode, runs: int) -> None:
    """All figures, as a table."""
    print("| what | median s | fastest | slowest | |\n|---|---|---|---|---|")
    desk.declare(node.address)
    builds, applies, linked = [], [], []
    for _ in range(runs):
        applies.append(desk.call("apply"))
        builds.append(_step(node, "build-environment"))
        linked.append(float(_parts(node).split("linked after ")[1].split()[0]))
        print(f"build: {_parts(node)}; load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        node.run("touch /opt/ai/env/torch/lib/python3.11/site-packages/torch/version.py")  # damage: the next apply builds anew
    applies.append(desk.call("apply"))
    _told("from the wheelhouse to the link, on the node", linked, _parts(node))
    _told("the same with all bytecode and the clean-up", builds)
    _told("the whole apply", applies)
    _told("plan, nothing to do", [desk.call("plan") for _ in range(runs)], "17,000 files compared with their seal")
    desk.declare(node.address, ", six: 1.17.0")
    desk.call("apply")
    calls, steps = [], []
    for _ in range(runs):
        calls.append(desk.call("env", "rollback", "torch"))
        steps.append(_step(node, "switch-environment"))
    _told("env rollback, the whole call", calls, "a fresh process: imports, connection, lease, step, second look")
    _told("env rollback, the step on the node", steps, "the build is compared with its seal, then the link moves")
    print(f"\nload at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--wheelhouse", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        house = (asked.wheelhouse or Path(folder) / "wheels").absolute()
        house.mkdir(exist_ok=True)
        with _node(house) as (lab, node):
            measure(Desk(Path(folder), lab, house), node, asked.runs)


if __name__ == "__main__":
    main()
