"""Stage nccl-cluster: all GPUs of all nodes add up right, by the network that is declared, at its bandwidth.

    torchrun --nnodes 2 --nproc-per-node gpu --rdzv-endpoint gpu01:29500 --rdzv-backend c10d \\
        -m trainer.gates.nccl_cluster --hosts 2 [--gpus 8] [--network rdma|tcp] [--least-busbw 20]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.gates import bandwidth, runner
from trainer.gates.ddp_node import placed, sums, wrong_sums
from trainer.gates.group import Group
from trainer.gates.outcome import Failed, Outcome, Problem
from trainer.leave import leave

GATE = "nccl-cluster"
_NETWORK = re.compile(r"via NET/([A-Za-z]+)(\S*)")


def networks(log: str) -> dict[str, int]:
    """From NCCL's log at INFO: channels by the network that they go by: IB/GDRDMA, IB (through host memory), Socket, a plugin's."""
    return dict(Counter(found[1] + ("/GDRDMA" if "/GDRDMA" in found[2] else "") for found in _NETWORK.finditer(log)))


def network_problems(said: Sequence[Mapping[str, int]], declared: str) -> list[Problem]:
    """Where channels between nodes do not go by what is declared (rdma, tcp), with the ranks."""

    def ranks_with(name: str) -> tuple[int, ...]:
        return tuple(rank for rank, mine in enumerate(said) if mine.get(name))

    if declared == "tcp":
        return []
    found = []
    if socket := ranks_with("Socket"):
        found.append(Problem("NetworkIsTcp", "NCCL goes by TCP (NET/Socket), and RDMA is declared", socket))
    if staged := ranks_with("IB"):
        found.append(Problem("NoGpuDirect", "NCCL goes by InfiniBand, but through host memory: NET/IB without GDRDMA", staged))
    if not any(mine for mine in said):
        found.append(Problem("NetworkUnseen", "NCCL's log names no channel between nodes: do all ranks run on one node?"))
    return found


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Places, sums, then bandwidth, then by which network it went."""
    outcome.problems += placed(outcome.evidence["ranks"], asked.gpus, asked.hosts)
    said = group.all_do("all-reduce", lambda: sums(group, device))
    outcome.problems += wrong_sums(said)
    bandwidth.check(group, device, asked, outcome)
    if device.type == "cpu":
        outcome.evidence["networks"] = "gloo, over TCP"
        return
    seen = group.all_do("reading NCCL's log", lambda: networks(_log(asked.log)))
    outcome.evidence["networks"] = dict(sum((Counter(mine) for mine in seen), Counter()))
    outcome.problems += network_problems(seen, asked.network)


def _log(path: Path) -> str:
    if not path.exists():
        raise Failed(Problem("NcclLogMissing", f"NCCL wrote no log to {path}"))
    return path.read_text(encoding="utf-8", errors="replace")


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--hosts", type=int, required=True, help="nodes that take part")
    options.add_argument("--gpus", type=int, help="GPUs that each node is declared to have")
    options.add_argument("--network", choices=("rdma", "tcp"), default="rdma", help="what the manifest declares between nodes")
    bandwidth.options(options)
    asked = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nccl-cluster-") as folder:
        asked.log = Path(folder) / f"rank-{os.environ.get('RANK', '0')}.log"
        # before the first communicator is made; NCCL reads them once
        os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH", "NCCL_DEBUG_FILE": str(asked.log)}
        return runner.run(GATE, check, asked)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
