"""What this process computes on, as facts: nothing is assumed of a device that was not asked."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Device:
    """`memory` in bytes, of one device; on a CPU that of the machine, shared by all its ranks."""

    kind: str  # cuda | cpu
    name: str
    memory: int
    bf16: bool
    fp16: bool

    @property
    def backend(self) -> str:
        """What its ranks talk through; values that are offloaded to the CPU are reduced there."""
        return "cpu:gloo,cuda:nccl" if self.kind == "cuda" else "gloo"

    def beside(self) -> AbstractContextManager[Any]:
        """In another thread: the GPU that the calling one uses, without waiting for all that it has queued there."""
        if self.kind == "cpu":
            return nullcontext()
        import torch

        found: AbstractContextManager[Any] = torch.cuda.stream(torch.cuda.Stream())
        return found


@dataclass(frozen=True, slots=True)
class Ranks:
    """Who this process is among all, as torchrun says it; alone without torchrun."""

    rank: int
    world: int
    local: int
    node_ranks: int
    launched: bool


def ranks() -> Ranks:
    """From torchrun's environment."""
    said = os.environ
    return Ranks(
        rank=int(said.get("RANK", "0")),
        world=int(said.get("WORLD_SIZE", "1")),
        local=int(said.get("LOCAL_RANK", "0")),
        node_ranks=int(said.get("LOCAL_WORLD_SIZE", "1")),
        launched="RANK" in said and "WORLD_SIZE" in said,
    )


def device(local: int) -> Device:
    """The GPU of this local rank; without any GPU, the CPU."""
    import torch

    if not torch.cuda.is_available():
        return Device("cpu", "CPU", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), bf16=True, fp16=False)
    count = torch.cuda.device_count()
    if local >= count:
        from trainer.errors import refuse

        raise refuse("", f"local rank {local} has no GPU: this node shows {count}; start as many ranks as there are GPUs")
    found = torch.cuda.get_device_properties(local)
    bf16 = torch.cuda.get_device_capability(local) >= (8, 0)  # emulated below Ampere, and then slower than fp32
    return Device("cuda", found.name, found.total_memory, bf16=bf16, fp16=True)
