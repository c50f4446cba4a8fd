"""Shards of fsdp: copied and written beside training where memory has room, at once where it has none; the same either way."""

from __future__ import annotations

import errno
import functools
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer import checkpoint, copies
from trainer.checkpoints import Checkpoints
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


def fsdp(together: Together) -> Any:
    """The engine of a run that trains all parameters."""
    from trainer.engines_fsdp import FsdpEngine

    run = RunConfig.model_validate({"model": "/m", "dataset": "d", "engine": "fsdp", "method": "full"})
    return FsdpEngine(run.engine_spec, run, Device("cpu", "CPU", 0, True, False), together)


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


def written(engine: Any, trainer: Any, root: Path) -> None:
    """What the trainer leaves to the engine of a checkpoint."""
    folder = checkpoint.named(root, trainer.state.global_step)
    folder.mkdir()
    assert engine.save(trainer, folder)


def values(trainer: Any) -> list[Any]:
    held = [p.full_tensor() for p in trainer.model.parameters()]
    moments = [v for state in trainer.optimizer.optimizer.state.values() for v in state.values()]
    return [t.tolist() for t in [*held, *(v.full_tensor() if hasattr(v, "full_tensor") else v for v in moments)]]


@pytest.mark.parametrize("free", [2**40, 0])
def test_shards_are_those_of_the_moment_of_saving(
    together: Together, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, free: int
) -> None:
    import torch

    monkeypatch.setattr(copies, "available", lambda: free)
    engine = fsdp(together)
    trainer = sharded(engine, 0.5)
    checkpoints = Checkpoints(tmp_path, together, together.beside(), {}, last=2)
    trainer.parts = SimpleNamespace(checkpoints=checkpoints)
    assert engine.ahead(trainer)
    go, beside, write = threading.Event(), [], engine._write

    def late(*given: Any) -> None:
        beside.append(threading.current_thread() is not threading.main_thread())
        assert not beside[-1] or go.wait(20)
        write(*given)

    monkeypatch.setattr(engine, "_write", late)
    wanted = []
    for step in (1, 2):  # the second time the copies' memory is used again
        wanted.append(values(trainer))
        trainer.state = SimpleNamespace(global_step=step, best_global_step=None)
        go.clear()
        with caplog.at_level(logging.WARNING, "trainer"):
            checkpoints.save(trainer, functools.partial(written, engine, trainer))
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                parameter.add_(1.0)
        go.set()
        checkpoints.wait()
    assert beside == [free > 0] * 2
    assert ("no room for a copy of the shards" in caplog.text) == (free == 0)
    assert wanted[0] != wanted[1]
    for step, held in zip((1, 2), wanted, strict=True):
        other = sharded(engine, 7.0)
        assert engine.restore(other, checkpoint.named(tmp_path, step))
        assert values(other) == held


def test_a_shard_counts_as_what_this_process_has_of_it(together: Together) -> None:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    from trainer.engines_fsdp import _held, _sharded

    shard = distribute_tensor(torch.zeros(4, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
    held = _held({"a": {"b": shard}, "lr": 1})
    assert copies.size(held) == 4 * 2 * 4
    again = _sharded(copies.Copies().of(held, "shards"), {"a": {"b": shard}, "lr": 1}, shard.device_mesh)
    assert again["lr"] == 1
    assert (again["a"]["b"].placements, again["a"]["b"].shape) == (shard.placements, shard.shape)


def test_what_cannot_be_written_is_an_error_that_a_save_reports(
    together: Together, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's own is none that `except Exception` sees."""
    import torch.distributed.checkpoint as dcp

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    engine = fsdp(together)
    monkeypatch.setattr(dcp.FileSystemWriter, "write_data", full)
    with pytest.raises(OSError, match=r"rank 0: .*No space left"):
        engine._write({"lr": 1}, tmp_path, together)


def test_memory_is_taken_once_the_optimizer_has_what_is_copied(
    together: Together, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first step whose update is left out gives it nothing: to ask for its state would make it up."""
    from trainer.callbacks import TakeMemory

    monkeypatch.setattr(copies, "available", lambda: 2**40)
    engine = fsdp(together)
    trainer = sharded(engine, 0.5)
    checkpoints = Checkpoints(tmp_path, together, together.beside(), {}, last=2)
    trainer.parts = SimpleNamespace(checkpoints=checkpoints)
    taking, optimizer = TakeMemory(lambda: bool(engine.ahead(trainer))), trainer.optimizer.optimizer
    full = dict(optimizer.state)
    optimizer.state.clear()
    taking.on_step_end(None, None, None)
    assert (taking.taken, checkpoints._copies._buffers, dict(optimizer.state)) == (False, {}, {})
    optimizer.state.update(full)
    taking.on_step_end(None, None, None)
    checkpoints.wait()
    first = dict(checkpoints._copies._buffers)
    assert {tuple(buffer.shape) for buffer in first.values()} >= {(5, 3), (2, 5)}
    monkeypatch.setattr(checkpoints, "_ahead", None)
    taking.on_step_end(None, None, None)
    assert checkpoints._ahead is None, "it is taken once"
    trainer.state = SimpleNamespace(global_step=1, best_global_step=None)
    checkpoints.save(trainer, functools.partial(written, engine, trainer))
    checkpoints.wait()
    assert {name: id(buffer) for name, buffer in checkpoints._copies._buffers.items()} == {n: id(b) for n, b in first.items()}


def test_a_layer_is_widened_only_when_it_is_sharded(together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once in fp32, on each rank of a node, may be more than its memory."""
    import torch
    import torch.distributed.fsdp

    shard = torch.distributed.fsdp.fully_shard
    widths: list[list[Any]] = []

    def watched(module: Any, **given: Any) -> Any:
        widths.append([layer.weight.dtype for layer in model])
        return shard(module, **given)

    class Layers(torch.nn.Sequential):  # type: ignore[misc]
        _no_split_modules = ("Linear",)

    monkeypatch.setattr(torch.distributed.fsdp, "fully_shard", watched)
    model = Layers(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to(torch.bfloat16)
    fsdp(together).shard(model)
    narrow, wide = torch.bfloat16, torch.float32
    assert widths == [[wide, narrow], [wide, wide], [wide, wide]]
