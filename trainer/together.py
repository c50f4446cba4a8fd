"""All ranks as one: who is missing at the start, and decisions that every rank takes alike.

What is agreed here goes over the CPU (gloo), so that asking costs no wait for the GPU.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from trainer.device import Device, Ranks
from trainer.errors import Problem, TrainerError


class Missing(TrainerError):
    """Ranks that did not come."""

    verdict = "network"


class Together:
    """The group of all ranks. Every method is called by all of them, at the same place."""

    def __init__(self, ranks: Ranks, group: Any) -> None:
        self._ranks, self.rank, self.world, self.node_ranks = ranks, ranks.rank, ranks.world, ranks.node_ranks
        self.group = group

    def most(self, values: Sequence[int]) -> list[int]:
        """The greatest of each value over all ranks."""
        import torch
        import torch.distributed as dist

        held = torch.tensor(list(values), dtype=torch.int64)
        dist.all_reduce(held, op=dist.ReduceOp.MAX, group=self.group)
        return [int(value) for value in held]

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank."""
        return bool(self.most([int(flag)])[0])

    def mean(self, value: float) -> float:
        """The mean over all ranks."""
        import torch
        import torch.distributed as dist

        held = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(held, group=self.group)
        return float(held[0]) / self.world

    def gather(self, value: Any) -> list[Any]:
        """What each rank has, by rank."""
        import torch.distributed as dist

        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, value, group=self.group)
        return found

    def first(self, action: Callable[[], Any]) -> Any:
        """Let rank 0 do it; all get what it gave, or the TrainerError that it raised."""
        import torch.distributed as dist

        found = [_told(action) if self.rank == 0 else None]
        dist.broadcast_object_list(found, src=0, group=self.group)
        return _heard(found)[0]

    def each_node(self, action: Callable[[], Any]) -> list[Any]:
        """Let the first rank of each node do it; what each of them gave, by node, or the first TrainerError that one raised."""
        return _heard(self.gather(_told(action) if self._ranks.local == 0 else None))

    def beside(self) -> Together:
        """Another group of the same ranks, for a thread of its own: what is agreed in one never waits for the other."""
        import torch.distributed as dist

        return Together(self._ranks, dist.new_group(backend="gloo"))

    def barrier(self) -> None:
        """Wait until all are here."""
        self.most([0])


def _told(action: Callable[[], Any]) -> tuple[Any, Any]:
    """What it gave, or the parts of the TrainerError that it raised: an error itself does not survive the way to another rank."""
    try:
        return action(), None
    except TrainerError as error:
        return None, (type(error), error.problems, error.verdict)


def _heard(found: Sequence[tuple[Any, Any] | None]) -> list[Any]:
    told = [one for one in found if one is not None]
    for _, error in told:
        if error is not None:
            kind, problems, verdict = error
            raise kind(problems, verdict)
    return [value for value, _ in told]


def start(ranks: Ranks, device: Device, patience: float) -> Together:
    """Join the group of all ranks. Raises Missing with the ranks that did not come within `patience` seconds."""
    import torch
    import torch.distributed as dist

    if not ranks.launched:
        alone()
    if device.kind == "cuda":
        torch.cuda.set_device(ranks.local)
    store = _roll_call(ranks, patience)
    # the store was asked by all: what follows waits for nobody who is not there
    dist.init_process_group(
        device.backend,
        store=dist.PrefixStore("trainer", store),
        rank=ranks.rank,
        world_size=ranks.world,
        timeout=timedelta(minutes=30),
    )
    group = dist.group.WORLD if device.backend == "gloo" else dist.new_group(backend="gloo")
    return Together(ranks, group)


def alone() -> None:
    """One process without torchrun: what the libraries want to read of a launch. The port is free at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "1")):
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(port))


def _roll_call(ranks: Ranks, patience: float) -> Any:
    import torch.distributed as dist

    limit = timedelta(seconds=patience)
    try:
        store = _store(ranks, limit)
        store.set(f"present/{ranks.rank}", socket.gethostname())
        everybody = [f"present/{rank}" for rank in range(ranks.world)]
        store.wait(everybody, limit)
    except (dist.DistError, RuntimeError, TimeoutError) as error:
        raise Missing(Problem("", _absent(locals().get("store"), ranks, patience, error))) from error
    return store


def _store(ranks: Ranks, limit: timedelta) -> Any:
    """torchrun's store; where it has none for us, one at rank 0 that does not wait for the others before it says who is there."""
    import torch.distributed as dist

    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return next(iter(dist.rendezvous("env://", timeout=limit)))[0]
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(host, port, ranks.world, ranks.rank == 0, timeout=limit, wait_for_workers=False)


def _absent(store: Any, ranks: Ranks, patience: float, error: Exception) -> str:
    if store is None:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        return f"rank {ranks.rank} found nobody at {where} within {patience:g} s ({str(error).splitlines()[0]})"
    missing = ", ".join(str(rank) for rank in range(ranks.world) if not store.check([f"present/{rank}"]))
    return f"rank {missing} of {ranks.world} did not come within {patience:g} s: is it running, and does it reach the first node?"


def finish() -> None:
    """Leave the group."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()
