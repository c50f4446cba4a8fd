"""What a turn, or its absence, comes to for the cluster and for its revision: reasons as codes, no sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.controller.assess import NEEDS_PERSON, of_many
from reconciler.controller.conditions import Said, Status, Subject
from reconciler.kinds.base import spec_digest
from reconciler.model.desired import DesiredNode
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Plan

# ends of a node after which trying again soon may help
_AGAIN = (End.FAILED, End.LOST, End.UNREACHABLE, End.GARBLED, End.SKIPPED, End.INTERRUPTED)
Why = tuple[str, Mapping[str, Any]]


def node_digest(node: DesiredNode) -> str:
    """Of all that Git wants of one node: its generation rises when this moves."""
    wanted = [node.policy, node.stack, sorted((str(r.id), spec_digest(r.spec)) for r in node.resources)]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]


def again(outcomes: Iterable[NodeOutcome]) -> bool:
    """Whether a turn is worth repeating before the next look for drift: what needs a person is not."""
    return any(o.end in _AGAIN and o.reason not in NEEDS_PERSON for o in outcomes)


def of_cluster(nodes: Mapping[str, Subject], stalled: Why | None, reconciling: Why | None) -> list[Said]:
    """The cluster's conditions: its nodes', and what concerns it as a whole (`stalled`: a revision refused, another controller)."""
    said = {one.type: one for one in of_many(nodes)}
    if not nodes:
        said["Ready"] = Said("Ready", Status.FALSE, "NoNodes")
    if reconciling:
        said["Reconciling"] = Said("Reconciling", Status.TRUE, *reconciling)
    if stalled:
        said["Stalled"] = Said("Stalled", Status.TRUE, *stalled)
        said["Ready"] = Said("Ready", Status.FALSE, *stalled)
    return list(said.values())


def of_revision(plan: Plan, outcomes: Mapping[str, NodeOutcome]) -> tuple[str, str, dict[str, Any]]:
    """State of a revision after a turn (applied, failed, held, superseded), a reason and its data."""
    ends = {name: o for name, o in outcomes.items() if o.end not in (End.UNCHANGED, End.CONVERGED)}
    if any(o.end is End.PREEMPTED for o in ends.values()):
        return "superseded", "NewerRevision", {}
    if any(o.end is End.INTERRUPTED for o in ends.values()):
        return "pending", "Interrupted", {}  # this controller was told to end
    if ends:
        name, first = next(iter(ends.items()))
        return "failed", first.reason or "NotCarriedOut", {**first.data, "node": name, "others": len(ends) - 1}
    held = [(name, c.hold, c) for name, node in plan.nodes.items() for c in node.held() if c.hold]
    if held:
        name, hold, change = held[0]
        return "held", hold.code, {**hold.data, "node": name, "resource": str(change.id), "others": len(held) - 1}
    return "applied", "", {"nodes": len(plan.nodes)}
