"""Saving: written aside while training waits; brought to the disk, sealed and named by all ranks while it goes on.

A rank that cannot save says so to the others, so that none of them waits; the half-written checkpoint is removed and training goes
on. The second failure in a row ends the run, for then nothing would be kept of what it still does.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer import checkpoint
from trainer.copies import Copies
from trainer.errors import Problem, StorageFailed
from trainer.together import Together

SCHEDULER = "scheduler.pt"
FAILURES = 2
NO_ROOM = "memory has no room for a copy of the %s: training waits while it is written"
log = logging.getLogger("trainer")


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
    _later: list[Callable[[], Any]] = field(default_factory=list)
    _copies: Copies = field(default_factory=Copies)

    def save(self, trainer: Any, write: Callable[[Path], None]) -> None:
        """One checkpoint of the step that was just done. `write(ROOT)` makes ROOT/checkpoint-STEP; called on every rank.

        Training is held up until everything is written or copied; the rest goes on beside it (`later`, `Sealing`).
        """
        self.wait()
        began, step = time.perf_counter(), int(trainer.state.global_step)
        if self.together.any(not self.healthy()):
            log.warning("step %d is not saved: its weights are not finite numbers", step)
            return
        folder = checkpoint.aside(self.root, step)
        self._later = []
        error = self._all(self.together, lambda: self._clear(folder, _bytes(trainer)), lambda: write(folder))
        held = time.perf_counter() - began
        self.on_held(held)
        if error:
            self._failed(error, folder, step)
            return
        self._sealing = Sealing(self, folder, step, trainer.state.best_global_step, held, self._later)
        self._sealing.start()

    def later(self, name: str, value: Any, write: Callable[[Any], Any]) -> None:
        """Write a copy of `value` beside training; at once, and the value itself, where memory has no room for copies."""
        if self._copies.fit(value, name):
            copied = self._copies.of(value, name)
            self._later.append(lambda: write(copied))
        else:
            log.warning(NO_ROOM, name)
            write(value)

    def after(self, action: Callable[[], Any]) -> None:
        """Something that has to end before the checkpoint is sealed."""
        self._later.append(action)

    def wait(self) -> None:
        """Until the last one is sealed. Raises StorageFailed where it was the second in a row that failed."""
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
            lambda: [action() for action in later],
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
