"""Stage lora-node: LoRA on a small set over the GPUs of one node: torchrun --nproc-per-node gpu -m trainer.gates.lora_node."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from trainer.gates import lora, runner
from trainer.gates.ddp_node import placed
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome
from trainer.leave import leave

GATE = "lora-node"


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Places, then training."""
    outcome.problems += placed(outcome.evidence["ranks"], asked.gpus, asked.hosts)
    lora.check(group, device, asked, outcome)


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--gpus", type=int, help="GPUs that the node is declared to have")
    options.set_defaults(hosts=1)
    return runner.run(GATE, check, options.parse_args(argv))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
