"""How an apply ended, node by node, and the one exit status that all of it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class End(StrEnum):
    """How a node ended. `lost`: the link broke while something ran there, whose outcome the next apply asks for.

    `superseded`: another controller took over, and nothing more is written anywhere. `preempted`: a newer revision came.
    """

    UNCHANGED = "unchanged"
    CONVERGED = "converged"
    FAILED = "failed"
    LOST = "lost"
    UNREACHABLE = "unreachable"
    GARBLED = "garbled"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"
    PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """One node's end: how many resources were written, how many are held, and for a failure its code and data."""

    end: End
    changed: int = 0
    held: int = 0
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


# design: 0 success, 1 error, 2 changes or holds present, 3 a node failed, 4 unreachable, 5 stale plan, 6 lock, 7 rolled back
PRECEDENCE = (130, 1, 6, 5, 7, 3, 4, 2, 0)
FAILURE_ENDS = {"unreachable": End.UNREACHABLE, "garbled": End.GARBLED, "refused": End.FAILED}
_CODES = {
    End.FAILED: 3,
    End.GARBLED: 3,
    End.SKIPPED: 3,
    End.LOST: 4,
    End.UNREACHABLE: 4,
    End.INTERRUPTED: 130,
    End.SUPERSEDED: 6,
    End.PREEMPTED: 2,  # what is left is the newer revision's
}


def exit_code(outcomes: Iterable[NodeOutcome]) -> int:
    """The status of a whole apply: where several hold, the first of PRECEDENCE."""
    codes = {0}
    for outcome in outcomes:
        codes.add(_CODES.get(outcome.end, 0))
        if outcome.held:
            codes.add(2)
    return first(codes)


def first(codes: Iterable[int]) -> int:
    """Of several exit statuses the one that is told."""
    found = set(codes)
    return next(code for code in PRECEDENCE if code in found)
