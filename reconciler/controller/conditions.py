"""Conditions: what is true of a node, a stack or the cluster. Set by one function; the time moves only with the status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

TYPES = ("Ready", "Reconciling", "Stalled", "Drifted", "Suspended", "Unreachable", "RebootRequired")


class Status(StrEnum):
    """As in Kubernetes."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Said:
    """What is found of one condition: a reason code (empty where there is nothing to say) and what its sentence needs."""

    type: str
    status: Status
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as it is kept. `since`: Unix seconds of the last move of `status`; `observed_generation`: what was judged."""

    type: str
    status: Status
    reason: str
    data: Mapping[str, Any]
    since: float
    observed_generation: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A node, stack or cluster: its generation rises whenever `digest`, what Git wants of it, is another one."""

    generation: int = 0
    digest: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def is_(self, type_: str, status: Status = Status.TRUE) -> bool:
        found = self.conditions.get(type_)
        return found is not None and found.status is status


def update(subject: Subject, digest: str | None, said: Iterable[Said], now: float) -> Subject:
    """`subject` with what is `said` now, the only way that a condition changes. `digest` None: what Git wants is not known anew.

    A condition that is not said stays as it is.
    """
    moved = digest is not None and digest != subject.digest
    generation = subject.generation + 1 if moved else subject.generation
    kept = dict(subject.conditions)
    for one in said:
        before = kept.get(one.type)
        since = before.since if before and before.status is one.status else now
        kept[one.type] = Condition(one.type, one.status, one.reason, dict(one.data), since, generation)
    return replace(subject, generation=generation, digest=subject.digest if digest is None else digest, conditions=kept)


def together(members: Iterable[Subject], type_: str) -> Status:
    """Of many: Ready only where all are; of every other type, where one is. Unknown where that rests on what is not known.

    Of none: not Ready, and nothing else either.
    """
    found = [m.conditions[type_].status if type_ in m.conditions else Status.UNKNOWN for m in members]
    deciding, other = (Status.FALSE, Status.TRUE) if type_ == "Ready" else (Status.TRUE, Status.FALSE)
    if deciding in found:
        return deciding
    if Status.UNKNOWN in found:
        return Status.UNKNOWN
    return other if found else Status.FALSE


def as_data(subject: Subject) -> dict[str, Any]:
    """For the file in the state directory and for `--json`, in the order of TYPES."""
    return {
        "generation": subject.generation,
        "digest": subject.digest,
        "conditions": [
            {
                "type": c.type,
                "status": c.status.value,
                "reason": c.reason,
                "data": dict(c.data),
                "since": c.since,
                "observedGeneration": c.observed_generation,
            }
            for c in sorted(subject.conditions.values(), key=lambda c: TYPES.index(c.type))
        ],
    }


def from_data(found: Any) -> Subject:
    """The subject as `as_data` wrote it. Raises KeyError, TypeError or ValueError for anything else."""
    conditions = {}
    for c in found["conditions"]:
        type_ = str(c["type"])
        TYPES.index(type_)
        about = (str(c["reason"]), dict(c["data"]), float(c["since"]), int(c["observedGeneration"]))
        conditions[type_] = Condition(type_, Status(c["status"]), *about)
    return Subject(int(found["generation"]), str(found["digest"]), conditions)
