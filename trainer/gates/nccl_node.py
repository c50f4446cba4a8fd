"""Stage nccl-node: bus bandwidth of all-reduce over the GPUs of one node, and no wrong value.

torchrun --nproc-per-node gpu -m trainer.gates.nccl_node [--gpus 8] [--least-busbw 200] [--baseline 230]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from trainer.gates import bandwidth, runner
from trainer.gates.ddp_node import placed
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome
from trainer.leave import leave

GATE = "nccl-node"


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Places, then every size."""
    outcome.problems += placed(outcome.evidence["ranks"], asked.gpus, 1)
    bandwidth.check(group, device, asked, outcome)


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--gpus", type=int, help="GPUs that the node is declared to have")
    bandwidth.options(options)
    return runner.run(GATE, check, options.parse_args(argv))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
