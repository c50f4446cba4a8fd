"""Stage lora-cluster: lora-node over all GPUs of all nodes: torchrun --nnodes 2 ... -m trainer.gates.lora_cluster --hosts 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainer.gates import runner
from trainer.gates.lora_node import check
from trainer.leave import leave

GATE = "lora-cluster"


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--hosts", type=int, required=True, help="nodes that take part")
    options.add_argument("--gpus", type=int, help="GPUs that each node is declared to have")
    return runner.run(GATE, check, options.parse_args(argv))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
