"""Which revision is next: the newest, unless history was rewritten or nothing is declared any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.problem import Problem

Record = Mapping[str, Any]
# problems that say that a revision declares nothing, in contrast to declaring something wrong
EMPTY = frozenset({"no-cluster", "nothing-declared", "unknown-cluster", "git-no-such-path"})


@dataclass(frozen=True, slots=True)
class Head:
    """What the repository shows: a commit, or (`commit` None) why it shows none: a code and its data.

    `transient`: the same look may succeed later. `forward`: the last accepted revision is among its ancestors (or there is none).
    """

    commit: str | None
    reason: str = ""
    data: tuple[tuple[str, Any], ...] = ()
    transient: bool = True
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Next:
    """The revision to act on (None: none yet). `refused`: why the newest is not it, as reason and data; `transient` as in Head."""

    commit: str | None
    refused: str = ""
    data: Mapping[str, Any] | None = None
    transient: bool = False


def choose(head: Head, accepted: str | None, approved: frozenset[str]) -> Next:
    """A look that fails changes nothing: the last accepted revision stays what is acted on."""
    if head.commit is None:
        return Next(accepted, head.reason, dict(head.data), head.transient)
    if head.commit == accepted or head.forward or head.commit in approved:
        return Next(head.commit)
    return Next(accepted, "NonFastForward", {"commit": head.commit, "accepted": accepted})


def emptied(problems: Iterable[Problem]) -> bool:
    """Whether a revision that cannot be used simply declares nothing."""
    found = [problem.code for problem in problems]
    return bool(found) and set(found) <= EMPTY


def accepted(records: Iterable[Record]) -> str | None:
    """The revision that was last taken to act on."""
    found = None
    for record in records:
        if record["type"] == "revision-taken":
            found = record["commit"]
    return found


def approved(records: Iterable[Record]) -> frozenset[str]:
    """Revisions that a person approved although they rewrite history or declare nothing."""
    return frozenset(record["commit"] for record in records if record["type"] == "revision-approved")
