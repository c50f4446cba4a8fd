"""What one call costs: CPU of its whole process tree by control group, what passed the relay, CPU of the nodes, wall time."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.tools import ROOT, Call
from lab import Lab, cgroups

ACCOUNTS = cgroups.ROOT / "cpuacct"
ENDED = 900.0  # seconds after which a call counts as hung


@dataclass(frozen=True)
class Cost:
    """Seconds, bytes of TCP payload, counts; `turns` and what is beside it are of all nodes together."""

    wall: float
    cpu: float
    sent: int
    received: int
    turns: int
    connections: int
    node_cpu: float


class Distance:
    """The relay in front of the nodes. `ports`: where each target is reached on 127.0.0.1."""

    def __init__(self, targets: Sequence[tuple[str, int]]) -> None:
        self._echo = socket.create_server(("127.0.0.1", 0))
        ends = [f"{host}:{port}" for host, port in (*targets, self._echo.getsockname()[:2])]
        argv = (sys.executable, "-m", "benchmarks.peers.relay", *ends)
        self._process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        *self.ports, self._to_echo = json.loads(self._line())

    def round_trips(self, asked: int = 30) -> list[float]:
        """Milliseconds of single bytes to an echo behind the relay and back."""
        found = []
        with socket.create_connection(("127.0.0.1", self._to_echo)) as near, self._echo.accept()[0] as far:
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(asked):
                began = time.perf_counter()
                near.sendall(b"?")
                far.sendall(far.recv(1))
                near.recv(1)
                found.append((time.perf_counter() - began) * 1000)
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the relay ended with {self._process.wait()}")
        return line

    def ask(self, line: str) -> dict[str, int]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        found: dict[str, int] = json.loads(self._line())
        return found

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()
        self._echo.close()


class Meter:
    """Runs calls in a control group of their own below the lab's, so that what they leave behind is found and counted."""

    def __init__(self, lab: Lab, distance: Distance) -> None:
        self._group = f"{lab.config.cgroup}/controller"
        self._nodes = [f"{lab.config.cgroup}/{name}" for name in lab.nodes]
        self._distance = distance
        cgroups.create(self._group)

    def run(self, call: Call) -> tuple[Cost, int, str]:
        """One call to its end: what it cost, its exit status, its standard output. Kept connections end with it."""
        passed, spent, nodes = self._distance.ask("counts"), _usage(self._group), self._of_nodes()
        began = time.perf_counter()
        with (call.cwd / "stderr").open("w") as log:
            done = subprocess.run(
                call.argv,
                cwd=call.cwd,
                env=call.whole_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                timeout=ENDED,
                check=False,
                preexec_fn=self._join,
            )
        wall = time.perf_counter() - began
        cgroups.kill(self._group)
        after, used = self._distance.ask("counts"), _usage(self._group)
        delta = {key: after[key] - passed[key] for key in passed}
        cost = Cost(wall, used - spent, **delta, node_cpu=self._of_nodes() - nodes)
        return cost, done.returncode, done.stdout

    def _join(self) -> None:
        for group in cgroups.groups(self._group):
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def _of_nodes(self) -> float:
        return sum(map(_usage, self._nodes))


def _usage(group: str) -> float:
    """Seconds of CPU so far, user and system, of the group and all below it."""
    return int(Path(ACCOUNTS, group, "cpuacct.usage").read_text()) / 1e9
