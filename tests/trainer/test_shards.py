"""Shards of fsdp: copied and written beside training where memory has room, at once where it has none; the same either way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer import copies
from trainer.device import Device, Ranks
from trainer.spec import RunConfig
from trainer.together import Together

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def together() -> Iterator[Together]:
    """A group of this process alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield Together(Ranks(0, 1, 0, 1, True), dist.group.WORLD)
    dist.destroy_process_group()


def sharded(engine: Any, value: float) -> Any:
    """What an engine looks at of a trainer, after one step; all weights are `value`."""
    import torch

    class Layers(torch.nn.Sequential):  # type: ignore[misc]
        _no_split_modules = ("Linear",)

    model = Layers(torch.nn.Linear(3, 5), torch.nn.Linear(5, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    engine.shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return SimpleNamespace(model=model, optimizer=SimpleNamespace(optimizer=optimizer))


def values(trainer: Any) -> list[Any]:
    held = [p.full_tensor() for p in trainer.model.parameters()]
    moments = [v for state in trainer.optimizer.optimizer.state.values() for v in state.values()]
    return [t.tolist() for t in [*held, *(v.full_tensor() if hasattr(v, "full_tensor") else v for v in moments)]]


class Later:
    """The checkpoints of a trainer, which say when what is left is done."""

    def __init__(self, beside: Together) -> None:
        self.beside = beside
        self.left: list[Callable[[], Any]] = []

    def after(self, action: Callable[[], Any]) -> None:
        self.left.append(action)


@pytest.mark.parametrize("free", [2**40, 0])
def test_shards_are_those_of_the_moment_of_saving(
    together: Together, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, free: int
) -> None:
    import torch

    from trainer.engines_fsdp import FsdpEngine

    monkeypatch.setattr(copies, "available", lambda: free)
    run = RunConfig.model_validate({"model": "/m", "dataset": "d", "engine": "fsdp", "method": "full"})
    engine = FsdpEngine(run.engine_spec, run, Device("cpu", "CPU", 0, True, False), together)
    trainer = sharded(engine, 0.5)
    later = trainer.parts = SimpleNamespace(checkpoints=Later(together.beside()))
    wanted = []
    for step in (1, 2):  # the second time the copies' memory is used again
        wanted.append(values(trainer))
        with caplog.at_level(logging.WARNING, "trainer"):
            assert engine.save(trainer, tmp_path / str(step))
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                parameter.add_(1.0)
        assert bool(later.checkpoints.left) == (free > 0)
        for action in later.checkpoints.left:
            action()
        later.checkpoints.left.clear()
    assert ("no room for a copy of the shards" in caplog.text) == (free == 0)
    assert wanted[0] != wanted[1]
    for step, held in zip((1, 2), wanted, strict=True):
        other = sharded(engine, 7.0)
        assert engine.restore(other, tmp_path / str(step))
        assert values(other) == held


def test_a_shard_counts_as_what_this_process_has_of_it(together: Together) -> None:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    shard = distribute_tensor(torch.zeros(4, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
    assert copies.size({"a": [shard]}) == 4 * 2 * 4


def test_a_layer_is_widened_only_when_it_is_sharded(together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once in fp32, on each rank of a node, may be more than its memory."""
    import torch
    import torch.distributed.fsdp

    from trainer.engines_fsdp import FsdpEngine

    shard = torch.distributed.fsdp.fully_shard
    widths: list[list[Any]] = []

    def watched(module: Any, **given: Any) -> Any:
        widths.append([layer.weight.dtype for layer in model])
        return shard(module, **given)

    class Layers(torch.nn.Sequential):  # type: ignore[misc]
        _no_split_modules = ("Linear",)

    monkeypatch.setattr(torch.distributed.fsdp, "fully_shard", watched)
    model = Layers(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to(torch.bfloat16)
    run = RunConfig.model_validate({"model": "/m", "dataset": "d", "engine": "fsdp", "method": "full"})
    FsdpEngine(run.engine_spec, run, Device("cpu", "CPU", 0, True, False), together).shard(model)
    narrow, wide = torch.bfloat16, torch.float32
    assert widths == [[wide, narrow], [wide, wide], [wide, wide]]
