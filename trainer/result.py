"""result.json: what became of a run, sealed by rank 0. A launcher reads it; torchrun's exit status says only zero or not."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainer import durable
from trainer.errors import TrainerError

NAME = "result.json"
Status = Literal["succeeded", "preempted", "failed", "refused"]


@dataclass(slots=True)
class Result:
    """`verdict`: why it failed (code, data, storage, diverged, out-of-memory, network), empty where it did not."""

    status: Status
    verdict: str = ""
    problems: list[str] = field(default_factory=list)
    step: int = 0
    max_steps: int = 0
    checkpoint: str = ""
    output: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    proof: dict[str, Any] = field(default_factory=dict)
    speed: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0


def refused(error: TrainerError, began: float) -> Result:
    """Of a run that did not begin."""
    return Result("refused", error.verdict, [str(problem) for problem in error.problems], started=began)


def write(folder: Path, result: Result) -> Path:
    """Seal the result below `folder`. Raises OSError where it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    result.ended = result.ended or time.time()
    durable.write(folder / NAME, durable.sealed(asdict(result)))
    (folder / NAME).chmod(0o644)
    return folder / NAME


def read(folder: Path) -> dict[str, Any] | None:
    """A result whose seal holds; None where there is none."""
    try:
        return durable.unsealed((folder / NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return None
