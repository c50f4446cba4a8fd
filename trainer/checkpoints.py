"""Saving: written aside while training waits; brought to the disk, sealed and named by all ranks while it goes on.

A rank that cannot save says so to the others, so that none of them waits; the half-written checkpoint is removed and training goes
on. The second failure in a row ends the run, for then nothing would be kept of what it still does.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer import checkpoint, copies
from trainer.copies import Ahead, Copies
from trainer.errors import Problem, StorageFailed
from trainer.together import Together

SCHEDULER = "scheduler.pt"
FAILURES = 2
log = logging.getLogger("trainer")


@dataclass(slots=True)
class Left:
    """What is left to be written of a checkpoint: by all ranks together, `now` or beside training, and by this one alone."""

    now: list[Callable[[], Any]] = field(default_factory=list)
    together: list[Callable[[], Any]] = field(default_factory=list)
    alone: list[Callable[[], Any]] = field(default_factory=list)

    def phases(self) -> list[Callable[[], Any]]:
        """Beside training: each its own first, since one that failed would leave the others waiting for what all write."""
        return [lambda: [write() for write in self.alone], *self.together]


@dataclass(slots=True)
class Checkpoints:
    """`about` is sealed into each one; `last`, `every`: what retention keeps beside the best.

    `together` is the group that training agrees by, `beside` another one for what goes on beside training.
    """

    root: Path
    together: Together
    beside: Together
    about: Mapping[str, Any]
    last: int
    every: int = 0
    healthy: Callable[[], bool] = lambda: True
    on_held: Callable[[float], None] = lambda seconds: None
    on_sealed: Callable[[float], None] = lambda seconds: None
    failures: int = 0
    _sealing: Sealing | None = None
    _ahead: Ahead | None = None
    _copies: Copies = field(default_factory=Copies)
    _fit: dict[str, bool] = field(default_factory=dict)  # whether memory has room for copies of that name
    _left: Left = field(default_factory=Left)

    def save(self, trainer: Any, write: Callable[[Path], None]) -> None:
        """One checkpoint of the step that was just done. `write(ROOT)` makes ROOT/checkpoint-STEP; called on every rank.

        Training is held up until the one before is sealed and everything of this is written or copied; the rest goes on beside
        it (`later`, `Sealing`).
        """
        began, step = time.perf_counter(), int(trainer.state.global_step)
        self.wait()
        if self.together.any(not self.healthy()):
            log.warning("step %d is not saved: its weights are not finite numbers", step)
            return
        folder = checkpoint.aside(self.root, step)
        left = self._left = Left()
        error = self._all(self.together, lambda: self._clear(folder, _bytes(trainer)), lambda: write(folder))
        error = error or self._all(self.together, *left.now)
        held = time.perf_counter() - began
        self.on_held(held)
        if error:
            self._failed(error, folder, step)
            return
        self._sealing = Sealing(self, folder, step, trainer.state.best_global_step, held, left.phases())
        self._sealing.start()

    def ahead(self, actions: Sequence[Callable[[], Any]], beside: AbstractContextManager[Any]) -> None:
        """Do what takes the memory for copies, in a thread that works `beside` training, before a checkpoint needs it."""
        self._ahead = Ahead(actions, beside)
        self._ahead.start()

    def reserve(self, name: str, value: Any, *, by_all: bool = False) -> Callable[[], Any]:
        """Decide whether `later` copies values of that name and shape; what takes the memory for it."""
        roomy = copies.roomy(value, self.together.node_ranks if by_all else 1)
        self._fit[name] = not self.together.any(not roomy) if by_all else roomy
        return (lambda: self._copies.of(value, name)) if self._fit[name] else (lambda: None)

    def later(self, name: str, value: Any, write: Callable[[Any], Any], *, by_all: bool = False) -> None:
        """Write a copy of `value` beside training; the value itself, while training waits, where memory has no room for copies.

        by_all: all ranks write together. They copy only where `reserve` was asked, since one without room decides for all.
        """
        if name not in self._fit and not by_all:
            self.reserve(name, value)
        if self._fit.get(name):
            copied = self._copies.of(value, name)
            (self._left.together if by_all else self._left.alone).append(lambda: write(copied))
            return
        log.warning("memory has no room for a copy of the %s: training waits while it is written", name)
        if by_all:
            self._left.now.append(lambda: write(value))
        else:
            write(value)

    def wait(self) -> None:
        """Until the last one is sealed. Raises StorageFailed where it was the second in a row that failed."""
        if self._ahead is not None:
            self._ahead.join()
            self._ahead = None
        if self._sealing is None:
            return
        sealing, self._sealing = self._sealing, None
        sealing.join()
        if sealing.fault is not None:
            raise sealing.fault
        if sealing.error:
            self._failed(sealing.error, sealing.folder, sealing.step)
        else:
            self.failures = 0

    def settle(self, folder: Path, step: int, best: int | None, later: list[Callable[[], Any]]) -> str:
        """Write what is left, bring it all to the disk, seal and name it; what went wrong on any rank."""
        settled: dict[str, tuple[int, str]] = {}
        return self._all(
            self.beside,
            *later,
            lambda: self._first(lambda: _lift(folder, step)),
            lambda: settled.update(checkpoint.settle(folder, self._mine(folder))),
            lambda: self._seal(folder, step, settled),
            lambda: self._first(lambda: self._named(step, best)),
        )

    def _all(self, group: Together, *phases: Callable[[], Any]) -> str:
        """One after another, until one fails on any rank."""
        return next((found for phase in phases if (found := self._attempt(group, phase))), "")

    def _attempt(self, group: Together, action: Callable[[], Any]) -> str:
        """Do it on every rank; what went wrong on any of them, the same text on all."""
        mine = ""
        try:
            action()
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            mine = f"rank {self.together.rank}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        return "; ".join(filter(None, group.gather(mine)))

    def _first(self, action: Callable[[], None]) -> None:
        if self.together.rank == 0:
            action()

    def _mine(self, folder: Path) -> list[str]:
        return checkpoint.contents(folder)[self.together.rank :: self.together.world]

    def _clear(self, folder: Path, needed: int) -> None:
        """Make room, and say it beforehand where there is none: a library that fails half-way leaves other ranks waiting."""
        if self.together.rank:
            return
        checkpoint.remove(folder)
        folder.mkdir(parents=True)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(f"the disk is full: {free / 2**20:,.1f} MiB are free, a checkpoint has {needed / 2**20:,.1f} MiB")

    def _seal(self, folder: Path, step: int, settled: Mapping[str, tuple[int, str]]) -> None:
        files = {name: what for part in self.beside.gather(dict(settled)) for name, what in part.items()}
        self._first(lambda: checkpoint.seal(folder, step, {**self.about, "saved": time.time()}, files))

    def _named(self, step: int, best: int | None) -> None:
        checkpoint.name(self.root, step)
        if gone := checkpoint.prune(self.root, self.last, best, self.every):
            log.info("removed %s", ", ".join(f"checkpoint-{number}" for number in gone))

    def _failed(self, error: str, folder: Path, step: int) -> None:
        self.failures += 1
        self._first(lambda: checkpoint.remove(folder))
        text = f"checkpoint-{step} could not be saved: {error}"
        if self.failures >= FAILURES:
            raise StorageFailed(Problem(str(self.root), f"{text}; the one before failed as well"))
        log.error("%s; training goes on, the next save is tried", text)

    # -- pieces that the engines leave to us

    def save_scheduler(self, scheduler: Any, folder: Path) -> None:
        """The learning rate's schedule, beside shards."""
        import torch

        torch.save(scheduler.state_dict(), folder / SCHEDULER)

    def load_scheduler(self, scheduler: Any, folder: Path) -> None:
        """Read it back."""
        import torch

        scheduler.load_state_dict(torch.load(folder / SCHEDULER, weights_only=True))

    def describe(self, trainer: Any, folder: Path) -> None:
        """Configuration and tokenizer of a model whose weights are in shards."""
        if trainer.args.should_save:
            folder.mkdir(parents=True, exist_ok=True)
            trainer.model.config.save_pretrained(folder)
            trainer.processing_class.save_pretrained(folder)


class Sealing(threading.Thread):
    """What is done with a written checkpoint while training goes on. `error` is the same on all ranks; `fault` is one of ours."""

    def __init__(
        self, checkpoints: Checkpoints, folder: Path, step: int, best: int | None, held: float, later: list[Callable[[], Any]]
    ) -> None:
        super().__init__(name=f"sealing-{step}", daemon=True)
        self.checkpoints, self.folder, self.step, self.best, self.held = checkpoints, folder, step, best, held
        self.later = later
        self.error = ""
        self.fault: Exception | None = None

    def run(self) -> None:
        """Everything is kept for who waits."""
        began = time.perf_counter()
        try:
            self.error = self.checkpoints.settle(self.folder, self.step, self.best, self.later)
        except Exception as fault:  # noqa: BLE001 - raised again in the thread that waits
            self.fault = fault
            return
        if not self.error:
            self.checkpoints.on_sealed(self.held)
            log.info("saved checkpoint-%d: held up %.2f s, sealed in %.2f s", self.step, self.held, time.perf_counter() - began)


def _bytes(trainer: Any) -> int:
    """What a checkpoint holds at least: each trained parameter and AdamW's two values for it."""
    return int(sum(p.numel() * p.element_size() * 3 for p in trainer.model.parameters() if p.requires_grad))


def _lift(folder: Path, step: int) -> None:
    inner = checkpoint.named(folder, step)
    for path in inner.iterdir():
        path.rename(folder / path.name)
    inner.rmdir()
