"""What was found on the nodes, and what is known of them from before: values that the planner reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reconciler.model.desired import Scalar
from reconciler.model.fact import Fact, Facts

if TYPE_CHECKING:
    from reconciler.model.plan import HoldReason

Fields = Mapping[str, Scalar]
Observation = Fact[Fields]


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that could not be observed: `kind` unreachable, garbled or refused; `reason` a code of the error tree."""

    kind: str
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node as it was found. `inventory`: resource -> digest of the spec that was last carried out there.

    `running`: titles of steps that are at work on it now: what was read may be half of a change.
    """

    facts: Facts
    boot_id: str
    inventory: Mapping[str, str] = field(default_factory=dict)
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedState:
    """Every node that was asked: found, or why not."""

    nodes: Mapping[str, NodeState | Failure]


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier applies left: per node the spec digest of each resource that was converged, and seconds a step took by title.

    `withheld`: per node resources that are not to be changed again whatever they are like, with why.
    """

    converged: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    withheld: Mapping[str, Mapping[str, HoldReason]] = field(default_factory=dict)
