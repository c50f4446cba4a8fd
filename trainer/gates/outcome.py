"""What a gate comes to, and how it is told: one line of JSON on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

PASSED, FAILED = "passed", "failed"
CPU = "STAND-IN: no GPU here, so gloo and the CPU took its place; nothing is said about GPUs, NCCL or their network"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `reason` is a code, `ranks` those that it was found on, `what` words for a person."""

    reason: str
    what: str
    ranks: tuple[int, ...] = ()


class Failed(Exception):
    """Ends a gate with its problems; raised on every rank that can still be reached."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(problem.what for problem in problems))


@dataclass(slots=True)
class Outcome:
    """`evidence` is what was seen, by name; `stand_in` says what played a missing part, empty where nothing did."""

    gate: str
    stand_in: str = ""
    problems: list[Problem] = field(default_factory=list)
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return FAILED if self.problems else PASSED

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {"gate": self.gate, "verdict": self.verdict, **{k: v for k, v in asdict(self).items() if k != "gate"}}

    def tell(self, stream: TextIO) -> int:
        """Print it; the exit status."""
        stream.write(json.dumps(self.data()) + "\n")
        stream.flush()
        return 1 if self.problems else 0


@contextlib.contextmanager
def stdout_kept() -> Iterator[TextIO]:
    """The real stdout for the result alone: everything else that this process prints, C libraries included, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(kept, "w", encoding="utf-8") as stream:
            yield stream
    finally:
        sys.stdout.flush()
