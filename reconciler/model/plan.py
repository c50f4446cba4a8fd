"""The plan as a value: reviewable, saved, refused when stale. It says what, where, why and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reconciler.model.desired import Origin, ResourceId, Revision, Scalar
from reconciler.model.observed import Failure, Fields


class Action(StrEnum):
    """What happens to one resource. `none` is an answer on purpose: every declared resource appears."""

    NONE = "none"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    HOLD = "hold"


# seconds until a node that restarts answers again: servers with terabytes of memory take over ten minutes
RESTART_DEADLINE = 1800.0
WRITING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)


class Reason(StrEnum):
    """Why a resource changes: Git says something new, or the node is no longer what Git said all along."""

    GIT = "git-change"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a resource, before and after: the same where a plan shows what stays as well."""

    path: str
    before: Scalar
    after: Scalar

    @property
    def moves(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class HoldReason:
    """Why a resource is left as it is although it may differ: a code, and what the sentence needs."""

    code: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """One declared resource on one node. `steps` are numbers of the node's steps that carry it out; `diff` is for eyes only."""

    id: ResourceId
    action: Action
    origin: Origin
    spec_digest: str
    reason: Reason | None = None
    fields: tuple[FieldChange, ...] = ()
    hold: HoldReason | None = None
    steps: tuple[int, ...] = ()
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One serialisable thing to run on a node. `title` is a code; `deadline` (seconds) is how long the controller waits.

    `action` is the node program's: {"file": {...}} is written at once, {"commands": [...]} runs in a unit of its own.
    """

    number: int
    title: str
    resources: tuple[ResourceId, ...]
    action: Mapping[str, Any]
    deadline: float = 60.0


@dataclass(frozen=True, slots=True)
class NodePlan:
    """Everything declared for one node. `failure`: it could not be observed, nothing is planned there.

    `observed`: resource -> its fields as found (None: absent), for what this plan touches; `digest` is over them.
    """

    name: str
    changes: tuple[Change, ...] = ()
    steps: tuple[Step, ...] = ()
    observed: Mapping[str, Fields | None] = field(default_factory=dict)
    digest: str = ""
    failure: Failure | None = None

    def writes(self) -> tuple[Change, ...]:
        return tuple(c for c in self.changes if c.action in WRITING)

    def held(self) -> tuple[Change, ...]:
        return tuple(c for c in self.changes if c.action is Action.HOLD)


@dataclass(frozen=True, slots=True)
class Wave:
    """Nodes that are changed side by side; the next wave starts when this one is over. `instead_of`: the canary that is down."""

    nodes: tuple[str, ...]
    canary: bool = False
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the plan takes. `seconds` None: these steps were never timed here. `reboots` and `interrupts` count nodes and units."""

    steps: int
    transactions: int
    reboots: int
    interrupts: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the cluster was asked for: nodes (`--on`), resources as Kind or Kind/name (`--target`). Empty: all."""

    nodes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to happen so that the nodes match one revision. `created` in Unix seconds."""

    id: str
    created: float
    cluster: str
    revision: Revision
    manifest_digest: str
    tool_version: str
    selection: Selection
    nodes: Mapping[str, NodePlan]
    waves: tuple[Wave, ...]
    cost: Cost

    @property
    def changes(self) -> int:
        """Resources that would be written, over all nodes."""
        return sum(len(node.writes()) for node in self.nodes.values())

    @property
    def holds(self) -> int:
        return sum(len(node.held()) for node in self.nodes.values())
