"""Gates as people start them: by torchrun with so many ranks, or one rank alone that was told of others."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Told:
    """What a gate came to: its exit status, and the one line that it printed."""

    status: int
    outcome: dict[str, Any]
    stderr: str

    @property
    def problems(self) -> list[tuple[str, list[int]]]:
        """Reasons with the ranks."""
        return [(problem["reason"], problem["ranks"]) for problem in self.outcome["problems"]]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in LAUNCH}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def told(argv: tuple[str, ...], **more: str) -> Told:
    """Run it. Its stdout has to be one line of JSON and nothing else."""
    done = subprocess.run(argv, cwd=ROOT, env=environment(**more), check=False, capture_output=True, text=True, timeout=200)
    (line,) = done.stdout.splitlines() or [f'{{"none": {json.dumps(done.stderr[-3000:])}}}']
    return Told(done.returncode, json.loads(line), done.stderr)


def launched(*words: str, ranks: int = 2) -> Told:
    """`words`: `-m MODULE options`, or a script."""
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
    return told((*torchrun, *words))


def lonely(rank: int, world: int, *words: str) -> Told:
    """One rank of several, of which no other comes."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    place = {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(world)}
    return told((sys.executable, *words), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **place)
