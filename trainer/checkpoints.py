"""Saving while all ranks are there: written aside, settled by all ranks together, sealed, named, and old ones taken away.

A rank that cannot save says so to the others, so that none of them waits; the half-written checkpoint is removed and training goes
on. The second failure in a row ends the run, for then nothing would be kept of what it still does.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer import checkpoint
from trainer.errors import Problem, StorageFailed
from trainer.together import Together

SCHEDULER = "scheduler.pt"
FAILURES = 2
log = logging.getLogger("trainer")


@dataclass(slots=True)
class Checkpoints:
    """`about` is sealed into each one; `last`, `every`: what retention keeps beside the best."""

    root: Path
    together: Together
    about: Mapping[str, Any]
    last: int
    every: int = 0
    healthy: Callable[[], bool] = lambda: True
    on_saved: Callable[[float], None] = lambda seconds: None
    failures: int = 0
    written: list[int] = field(default_factory=list)

    def save(self, trainer: Any, write: Callable[[Path], None]) -> None:
        """One checkpoint of the step that was just done. `write(ROOT)` makes ROOT/checkpoint-STEP; called on every rank."""
        began, step = time.perf_counter(), int(trainer.state.global_step)
        if self.together.any(not self.healthy()):
            log.warning("step %d is not saved: its weights are not finite numbers", step)
            return
        folder = checkpoint.aside(self.root, step)
        settled: dict[str, tuple[int, str]] = {}
        phases: tuple[Callable[[], None], ...] = (
            lambda: self._clear(folder, _bytes(trainer)),
            lambda: write(folder),
            lambda: self._first(lambda: _lift(folder, step)),
            lambda: settled.update(checkpoint.settle(folder, self._mine(folder))),
            lambda: self._seal(folder, step, settled),
            lambda: self._first(lambda: self._named(step, trainer.state.best_global_step)),
        )
        error = next((found for phase in phases if (found := self._attempt(phase))), "")
        if error:
            self._failed(error, folder, step)
            return
        self.failures = 0
        self.written.append(step)
        self.on_saved(time.perf_counter() - began)
        log.info("saved checkpoint-%d in %.2f s", step, time.perf_counter() - began)

    def _attempt(self, action: Callable[[], None]) -> str:
        """Do it on every rank; what went wrong on any of them, the same text on all."""
        mine = ""
        try:
            action()
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            mine = f"rank {self.together.rank}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        return "; ".join(filter(None, self.together.gather(mine)))

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
        files = {name: what for part in self.together.gather(dict(settled)) for name, what in part.items()}
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


def _bytes(trainer: Any) -> int:
    """What a checkpoint holds at least: each trained parameter and AdamW's two values for it."""
    return int(sum(p.numel() * p.element_size() * 3 for p in trainer.model.parameters() if p.requires_grad))


def _lift(folder: Path, step: int) -> None:
    inner = checkpoint.named(folder, step)
    for path in inner.iterdir():
        path.rename(folder / path.name)
    inner.rmdir()
