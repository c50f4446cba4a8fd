"""What every resource kind offers the planner, and the values they exchange."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.model.desired import PackageManager, Resource, ResourceId, Spec
from reconciler.model.fact import Facts, Probe
from reconciler.model.observed import Fields, Observation
from reconciler.model.plan import Action, FieldChange, HoldReason


@dataclass(frozen=True, slots=True)
class Context:
    """What a kind may look at: the node's facts, its package manager, the repository definitions that are declared for it.

    `written`: files that this plan writes and units care for, each with the units that it names to be restarted. `spare`: the node
    may be restarted now, by what Git says of nodes that are out of service at once. `files`: contents as earlier steps of this
    plan leave them, by path. `others`: of a resource that this node makes for others too, their facts; None: one that could not be
    asked, or was not.
    """

    facts: Facts
    manager: PackageManager | None = None
    repositories: tuple[tuple[str, str], ...] = ()
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spare: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)
    others: Mapping[ResourceId, tuple[Facts | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a kind says of one resource. `observed` None: absent, or not known."""

    action: Action
    fields: tuple[FieldChange, ...] = ()
    hold: HoldReason | None = None
    observed: Fields | None = None
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A step before it has its number on the node."""

    title: str
    resources: tuple[ResourceId, ...]
    action: Mapping[str, Any]
    deadline: float = 60.0


Todo = Sequence[tuple[Resource, Verdict]]


class Kind(Protocol):
    """One resource kind: pure functions from specs and facts to verdicts and steps."""

    name: str

    def rank(self, spec: Spec) -> int:
        """Where this resource stands in the order on a node: lower first."""
        ...

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        """What has to be asked so that `compare` can answer. `manager` None: not known before the node says its distribution."""
        ...

    def observe(self, spec: Spec, context: Context) -> Observation:
        """The resource as it is on the node."""
        ...

    def compare(self, spec: Spec, context: Context) -> Verdict:
        """What would have to happen. Unknown is a hold, never an absence."""
        ...

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        """What else has to be asked for those that differ before their steps can be written."""
        ...

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        """How to carry out all of `todo` (one rank of this kind on one node), in order."""
        ...


def held(code: str, observed: Fields | None = None, **data: Any) -> Verdict:
    """Leave the resource as it is, and say why."""
    return Verdict(Action.HOLD, hold=HoldReason(code, data), observed=observed)


def spec_digest(spec: Spec) -> str:
    """SHA-256 (hex, 16 digits) of a spec: what tells a change in Git from a change on the node."""

    def plain(value: Any) -> Any:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value

    fields = {name: plain(value) for name, value in dataclasses.asdict(spec).items()}
    return hashlib.sha256(json.dumps([type(spec).__name__, fields], sort_keys=True).encode()).hexdigest()[:16]
