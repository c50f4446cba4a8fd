"""Resources that one node makes in a folder which several nodes see: what it has to know of them, and they of it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from reconciler.model.desired import DesiredNode, DesiredState, PythonEnvironmentSpec, ResourceId
from reconciler.model.fact import Facts
from reconciler.model.observed import NodeState, ObservedState
from reconciler.model.plan import Action, Change, HoldReason, NodePlan

WAITS = "BuilderFirst"  # the hold of who cannot go on before another node has done its work


def made_by(node: DesiredNode) -> dict[ResourceId, str]:
    """What the node shares with others and does not make itself: who does."""
    specs = ((r.id, r.spec) for r in node.resources)
    return {found: spec.builder for found, spec in specs if isinstance(spec, PythonEnvironmentSpec) and spec.builder is not None}


def sharers(desired: DesiredState) -> dict[str, dict[ResourceId, tuple[str, ...]]]:
    """By builder, what it makes for others too, and the nodes that see it."""
    found: dict[str, dict[ResourceId, tuple[str, ...]]] = {}
    for name, node in desired.nodes.items():
        for resource, maker in made_by(node).items():
            mine = found.setdefault(maker, {})
            mine[resource] = (*mine.get(resource, ()), name)
    return found


def others(desired: DesiredState, observed: ObservedState) -> dict[str, dict[ResourceId, tuple[Facts | None, ...]]]:
    """By builder, what those nodes said; None for each that was not asked or did not answer."""

    def said(name: str) -> Facts | None:
        state = observed.nodes.get(name)
        return state.facts if isinstance(state, NodeState) else None

    return {maker: {r: tuple(map(said, names)) for r, names in mine.items()} for maker, mine in sharers(desired).items()}


def explained(desired: DesiredState, nodes: Mapping[str, NodePlan]) -> dict[str, NodePlan]:
    """The plans, where who waits for another node says what keeps that one."""
    return {name: _explained(desired.nodes[name], node, nodes) for name, node in nodes.items()}


def _explained(desired: DesiredNode, node: NodePlan, nodes: Mapping[str, NodePlan]) -> NodePlan:
    makers = made_by(desired)
    if not any(_waits(change) for change in node.changes):
        return node
    changes = (replace(c, hold=_why(c, makers[c.id], nodes)) if _waits(c) else c for c in node.changes)
    return replace(node, changes=tuple(changes))


def _waits(change: Change) -> bool:
    return change.hold is not None and change.hold.code == WAITS


def _why(change: Change, maker: str, nodes: Mapping[str, NodePlan]) -> HoldReason | None:
    there = nodes.get(maker)
    if there is None:
        return change.hold
    if there.failure:
        return HoldReason("BuilderFailed", {**there.failure.data, "inner": there.failure.reason, "builder": maker})
    held = next((c.hold for c in there.changes if c.id == change.id and c.hold), None)
    return HoldReason("BuilderHeld", {**held.data, "inner": held.code, "builder": maker}) if held else change.hold


def waiting(desired: DesiredState, nodes: Mapping[str, NodePlan], done: Container[str]) -> dict[str, tuple[ResourceId, ...]]:
    """By node, what is held only until nodes that are `done` by now had made it."""
    found = {}
    for name, node in nodes.items():
        makers = made_by(desired.nodes[name])
        ids = tuple(c.id for c in node.changes if c.action is Action.HOLD and _waits(c) and makers[c.id] in done)
        if ids:
            found[name] = ids
    return found
