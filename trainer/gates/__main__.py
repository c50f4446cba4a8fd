"""Any gate by the name of its stage: `python -m trainer.gates STAGE [options]`, or below torchrun."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence

from trainer.leave import leave

STAGES = {
    "torch": "one_gpu",
    "ddp-node": "ddp_node",
    "nccl-node": "nccl_node",
    "nccl-cluster": "nccl_cluster",
    "frameworks": "frameworks",
    "lora-node": "lora_node",
    "lora-cluster": "lora_cluster",
}


def main(argv: Sequence[str]) -> int:
    """The gate's exit status; 2 for a stage that none of these proves."""
    stage = argv[0] if argv else ""
    if stage not in STAGES:
        near = difflib.get_close_matches(stage, STAGES, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        print(f"'{stage}' is no stage that is proved here; these are: {', '.join(STAGES)}{hint}", file=sys.stderr)
        return 2
    status: int = importlib.import_module(f"trainer.gates.{STAGES[stage]}").main(argv[1:])
    return status


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
