"""Facts of nodes as they were seen: plain values with their time, which are kept and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


def later(before: NodeSeen | None, now: NodeSeen) -> NodeSeen:
    """`now`, and what was seen before of the facts that were not asked this time."""
    return NodeSeen(now.boot_id, {**(before.facts if before else {}), **now.facts}, now.own)
