"""Facts of nodes as they were seen: plain values with their time, which are kept and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Merge = Callable[[Any, Any], Any]  # what was known and what is new, both as plain JSON


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fact cost: bytes of raw answers; milliseconds on the node, waited and of its processor."""

    bytes: int
    milliseconds: float
    cpu_milliseconds: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One fact. `value` is plain JSON: `{"absent": reason}` and `{"unknown": why, "detail": said}` are what is no value.

    `taken`: Unix seconds by the controller's clock; `boot_id`: the node's boot then; `cost` None where it was not measured.
    """

    value: Any
    taken: float
    boot_id: str
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node: its facts by name, the boot of the last look, and what that look cost the node's program itself."""

    boot_id: str
    facts: Mapping[str, Seen] = field(default_factory=dict)
    own: Cost | None = None


def is_unknown(value: Any) -> bool:
    return isinstance(value, Mapping) and "unknown" in value and set(value) <= {"unknown", "detail"}


def is_absent(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"absent"}


def later(before: NodeSeen | None, now: NodeSeen, merges: Mapping[str, Merge]) -> NodeSeen:
    """`now`, and what was seen before of the facts that were not asked this time.

    A fact of `merges` that was asked is put together with what was seen of it in the same boot, where both are values.
    """
    old = before.facts if before else {}
    both = {name: replace(fact, value=_merged(old.get(name), fact, merges.get(name))) for name, fact in now.facts.items()}
    return NodeSeen(now.boot_id, {**old, **both}, now.own)


def _merged(old: Seen | None, new: Seen, merge: Merge | None) -> Any:
    apart = old is None or old.boot_id != new.boot_id or _is_no_value(old.value) or _is_no_value(new.value)
    return new.value if merge is None or old is None or apart else merge(old.value, new.value)


def _is_no_value(value: Any) -> bool:
    return is_absent(value) or is_unknown(value)


def cursors(before: NodeSeen | None, merges: Mapping[str, Merge]) -> dict[str, str]:
    """Where the next look at each fact of `merges` begins; nothing of one that was not a value."""
    found = {name: fact.value for name, fact in (before.facts if before else {}).items() if name in merges}
    marks = {name: value.get("cursor") for name, value in found.items() if isinstance(value, Mapping)}
    return {name: mark for name, mark in marks.items() if isinstance(mark, str)}
