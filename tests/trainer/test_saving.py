"""Saving that fails: it is said, nothing half-written is left, and the run ends only when nothing can be kept any more."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer import checkpoint
from trainer.checkpoints import Checkpoints
from trainer.errors import StorageFailed


class Parameter:
    requires_grad = True

    def numel(self) -> int:
        return 10

    def element_size(self) -> int:
        return 4


class Alone:
    """A group of one rank."""

    rank, world, node_ranks = 0, 1, 1

    def any(self, flag: bool) -> bool:
        return flag

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        """Nobody to wait for."""


def trainer(step: int) -> Any:
    return SimpleNamespace(
        state=SimpleNamespace(global_step=step, best_global_step=None), model=SimpleNamespace(parameters=lambda: [Parameter()])
    )


def writes(step: int) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        inner = root / f"checkpoint-{step}"
        inner.mkdir()
        (inner / "model").write_text("weights")

    return write


def full(_root: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def saving(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path, Alone(), Alone(), {"world": 1}, last=2)  # type: ignore[arg-type]


def test_a_full_disk_is_said_and_the_next_save_is_tried(saving: Checkpoints, caplog: pytest.LogCaptureFixture) -> None:
    saving.save(trainer(2), writes(2))
    with caplog.at_level(logging.ERROR, "trainer"):
        saving.save(trainer(4), full)
    assert "checkpoint-4 could not be saved: rank 0: [Errno 28] No space left on device; training goes on" in caplog.text
    assert sorted(path.name for path in saving.root.iterdir()) == ["checkpoint-2", "latest"]
    saving.save(trainer(6), writes(6))
    saving.wait()
    assert checkpoint.steps(saving.root) == [6, 2]
    assert checkpoint.newest(saving.root).skipped == ()


def test_the_second_failure_in_a_row_ends_the_run(saving: Checkpoints) -> None:
    saving.save(trainer(2), full)
    with pytest.raises(StorageFailed, match=r"checkpoint-4 could not be saved: .*; the one before failed as well"):
        saving.save(trainer(4), full)


def test_what_fails_while_it_is_sealed_counts_as_well(saving: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seal of the first fails; that is found when the next one is saved, and the next one when the run ends."""
    monkeypatch.setattr(checkpoint, "seal", lambda *_: full(saving.root))
    saving.save(trainer(2), writes(2))
    saving.save(trainer(4), writes(4))
    assert saving.failures == 1
    with pytest.raises(StorageFailed, match=r"checkpoint-4 could not be saved"):
        saving.wait()
    assert list(saving.root.iterdir()) == []


def test_training_goes_on_while_a_checkpoint_is_sealed(saving: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    seal = checkpoint.seal

    def late(*given: Any) -> None:
        assert go.wait(20)
        seal(*given)

    monkeypatch.setattr(checkpoint, "seal", late)
    saving.save(trainer(2), writes(2))
    assert checkpoint.steps(saving.root) == []
    go.set()
    saving.wait()
    assert checkpoint.steps(saving.root) == [2]


@pytest.mark.parametrize(("free", "held_up"), [(2**40, False), (0, True)])
def test_a_copy_is_written_beside_training_where_memory_has_room_for_it(
    saving: Checkpoints, monkeypatch: pytest.MonkeyPatch, free: int, held_up: bool
) -> None:
    monkeypatch.setattr("trainer.copies.available", lambda: free)
    threads: list[bool] = []

    def write(root: Path) -> None:
        writes(2)(root)
        saving.later("optimizer", {"lr": 1}, lambda _: threads.append(threading.current_thread() is threading.main_thread()))

    saving.save(trainer(2), write)
    saving.wait()
    assert threads == [held_up]
    assert checkpoint.steps(saving.root) == [2]


@pytest.mark.parametrize("asked", [True, False])
def test_what_all_write_is_copied_only_where_all_said_that_they_have_room(
    saving: Checkpoints, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """Asking in the middle of a save would wait for a rank whose own part had failed."""
    monkeypatch.setattr("trainer.copies.available", lambda: 2**40)
    asks: list[bool] = []

    def ask(flag: bool) -> bool:
        asks.append(flag)
        return flag

    monkeypatch.setattr(saving.together, "any", ask)
    if asked:
        saving.ahead([saving.reserve("shards", {"lr": 1}, by_all=True)], nullcontext())
    before, order = len(asks), []

    def write(root: Path) -> None:
        writes(2)(root)
        saving.later("shards", {"lr": 1}, lambda _: order.append("all"), by_all=True)
        saving.later("model", {"lr": 1}, lambda _: order.append("model"))

    saving.save(trainer(2), write)
    assert len(asks) == before + 1  # whether weights are numbers
    saving.wait()
    assert order == (["model", "all"] if asked else ["all", "model"])
    assert checkpoint.steps(saving.root) == [2]


@pytest.mark.parametrize("free", [2**40, 0])
def test_what_all_write_is_not_begun_where_one_failed_before(
    saving: Checkpoints, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    monkeypatch.setattr("trainer.copies.available", lambda: free)
    begun: list[Any] = []
    saving.ahead([saving.reserve("shards", {"lr": 1}, by_all=True)], nullcontext())

    def write(root: Path) -> None:
        writes(2)(root)
        saving.later("shards", {"lr": 1}, begun.append, by_all=True)
        saving.later("model", {"lr": 1}, lambda _: full(root))  # beside training, or at once

    saving.save(trainer(2), write)
    saving.wait()
    assert (saving.failures, begun) == (1, [])


def test_memory_that_cannot_be_taken_ahead_is_said_and_taken_when_it_is_needed(
    saving: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "trainer"):
        saving.ahead([lambda: full(saving.root)], nullcontext())
        saving.save(trainer(2), writes(2))
        saving.wait()
    assert "could not be taken beforehand: [Errno 28]" in caplog.text
    assert checkpoint.steps(saving.root) == [2]


def test_waiting_for_the_one_before_holds_training_up_as_well(saving: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []
    saving.on_held = held.append
    clock = iter(range(100))
    monkeypatch.setattr("trainer.checkpoints.time.perf_counter", lambda: next(clock))
    wait = saving.wait

    def waits() -> None:
        for _ in range(10):
            next(clock)
        wait()

    monkeypatch.setattr(Checkpoints, "wait", lambda _self: waits())
    saving.save(trainer(2), writes(2))
    wait()
    assert held[0] > 10


def test_too_little_room_is_said_before_anything_is_written(
    saving: Checkpoints, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trainer.checkpoints.shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    written: list[Path] = []
    with caplog.at_level(logging.ERROR, "trainer"):
        saving.save(trainer(2), written.append)
    assert written == []
    assert "the disk is full" in caplog.text


def test_weights_that_are_no_numbers_are_never_sealed(saving: Checkpoints) -> None:
    saving.healthy = lambda: False
    saving.save(trainer(2), writes(2))
    assert checkpoint.steps(saving.root) == []


def test_what_is_kept_is_the_newest_the_best_and_each_kth(saving: Checkpoints) -> None:
    saving.every = 6
    for step in range(2, 14, 2):
        one = trainer(step)
        one.state.best_global_step = 4
        saving.save(one, writes(step))
    saving.wait()
    assert checkpoint.steps(saving.root) == [12, 10, 6, 4]
