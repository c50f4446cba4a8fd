"""Which checkpoint a run goes on from, and whether it is this run's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer import checkpoint
from trainer.checkpoint import Sealed
from trainer.engines import Engine
from trainer.errors import Problem, Refused
from trainer.resolve import Resolved
from trainer.spec import RunConfig

log = logging.getLogger("trainer")
# values that may change between a checkpoint and its resumption without another training coming of it
FREE = frozenset(
    [
        "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing",
        "logging_steps", "save_steps", "eval_strategy", "eval_steps", "dataloader_num_workers", "dataloader_prefetch_factor",
        "dataloader_pin_memory", "dataset_num_proc",
    ]
)  # fmt: skip


def identity(run: RunConfig, resolved: Resolved, model: str, data: str, world: int) -> dict[str, Any]:
    """What makes this run the one that it is."""
    method = run.method.model_dump(mode="json", exclude={"merge"})
    return {
        "model": model,
        "data": data,
        "objective": run.objective.model_dump(mode="json"),
        "method": method,
        "engine": run.engine_spec.type,
        "effective_batch_size": run.batch(world),
        "values": {k: str(getattr(v, "value", v)) for k, v in sorted(resolved.arguments.items()) if k not in FREE},
    }


def choose(root: Path, asked: Path | None) -> Sealed | None:
    """The checkpoint that was asked for, or the newest whole one below `root`. Raises Refused for one that is not whole."""
    if asked is None:
        choice = checkpoint.newest(root)
        for text in choice.skipped:
            log.warning("%s", text)
        return choice.found
    found = checkpoint.read_seal(asked.resolve()) if asked.is_dir() else "there is no such folder"
    wrong = [found] if isinstance(found, str) else checkpoint.faults(found)
    if wrong:
        raise Refused([Problem(str(asked), text) for text in wrong], "storage")
    assert isinstance(found, Sealed)
    return found


def hold(found: Sealed, mine: Mapping[str, Any], engine: Engine) -> int | None:
    """Raises Refused where the checkpoint is another run's, or cannot be resumed on so many ranks.

    Gives the world size that it was saved by, where that is another one than here.
    """
    problems = [Problem(str(found.path), text) for text in _differences(found.about.get("identity", {}), mine)]
    saved = int(found.about.get("world", 0))
    if why := engine.resume_problem(saved):
        problems.append(Problem(str(found.path), why))
    if problems:
        hint = "give this run another --name, or remove that run's checkpoints"
        raise Refused([*problems, Problem("", hint)])
    return saved if saved != engine.together.world else None


def _differences(saved: Mapping[str, Any], mine: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in mine.items():
        theirs = saved.get(name)
        if theirs == value:
            continue
        if isinstance(value, Mapping) and isinstance(theirs, Mapping):
            keys = sorted(key for key in {*value, *theirs} if value.get(key) != theirs.get(key))
            found += [f"it was made with {key} {theirs.get(key)}, this run has {value.get(key)}" for key in keys]
        elif name in ("model", "data"):
            found.append(f"it was made with another {name} (digest {str(theirs)[:12]}, this run's is {str(value)[:12]})")
        else:
            found.append(f"it was made with {name} {theirs}, this run has {value}")
    return found
