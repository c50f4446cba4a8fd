"""A gate on ranks of which number 1 has a fault: `faulty.py FAULT STAGE options`, below torchrun."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import torch.distributed as dist

from trainer.gates.__main__ import main

REAL = dist.all_reduce


def hangs(tensor: Any, *args: Any, **kwargs: Any) -> None:
    threading.Event().wait()


def raises(tensor: Any, *args: Any, **kwargs: Any) -> None:
    raise RuntimeError("NCCL WARN Cuda failure 'an illegal memory access was encountered'")


def adds_wrong(tensor: Any, *args: Any, **kwargs: Any) -> None:
    REAL(tensor, *args, **kwargs)
    tensor.view(-1)[-1] += 1


if os.environ["RANK"] == "1":
    dist.all_reduce = {"hangs": hangs, "raises": raises, "adds-wrong": adds_wrong}[sys.argv[1]]
sys.exit(main(sys.argv[2:]))
