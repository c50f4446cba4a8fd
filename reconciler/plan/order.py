"""Which nodes are changed when: the canaries first, then side by side within maxUnavailable."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.desired import DesiredState
from reconciler.model.observed import Failure, ObservedState
from reconciler.model.plan import NodePlan, Wave


def width(max_unavailable: str, total: int, down: int) -> int:
    """How many nodes may be changed at once.

    Nodes that are down count, but do not stop the others: what does not restart a node takes it out of no service, so one node
    at a time always remains.
    """
    return max(1, allowed(max_unavailable, total) - down)


def allowed(max_unavailable: str, total: int) -> int:
    """How many nodes may be out of service at once. A share is of all nodes, rounded down, at least one."""
    share = total * int(max_unavailable[:-1]) // 100 if max_unavailable.endswith("%") else int(max_unavailable)
    return max(1, share)


def spare(desired: DesiredState, observed: ObservedState) -> bool:
    """Whether one more node may go out of service now, those that could not be observed counted."""
    down = sum(1 for state in observed.nodes.values() if isinstance(state, Failure))
    return allowed(desired.rollout.max_unavailable, len(desired.nodes)) > down


def _canaries(desired: DesiredState, nodes: Mapping[str, NodePlan], todo: list[str]) -> list[Wave]:
    """One node of each profile that has changes: the declared one, else the first; the next that answers where that one is down."""
    waves: list[Wave] = []
    profiles: dict[str | None, list[str]] = {}
    for name in desired.nodes:
        if name in nodes:
            profiles.setdefault(desired.nodes[name].profile, []).append(name)
    declared = desired.rollout.canary
    for members in profiles.values():
        first = declared if declared in members else members[0]
        down = nodes[first].failure is not None or _left_out(nodes[first])
        chosen = first if not down else next((m for m in members if m in todo), None)
        if chosen in todo and len([m for m in members if m in todo]) > 1:
            waves.append(Wave((chosen,), canary=True, instead_of=first if down else None))
    return waves


def _left_out(node: NodePlan) -> bool:
    """Whether it differs and nothing is done about it: it would prove nothing to the others."""
    return not node.steps and any(change.reason for change in node.held())


def waves(desired: DesiredState, nodes: Mapping[str, NodePlan]) -> tuple[Wave, ...]:
    """All nodes with something to write, each in one wave. A canary whose wave fails ends the rollout."""
    todo = [name for name in desired.nodes if name in nodes and nodes[name].steps]
    canaries = _canaries(desired, nodes, todo)
    if canaries:
        down = next((w.instead_of for w in canaries if w.instead_of), None)
        first = Wave(tuple(w.nodes[0] for w in canaries), canary=True, instead_of=down)
        ahead = [first] if len(canaries) <= _width(desired, nodes) else canaries
    else:
        ahead = []
    rest = [name for name in todo if not any(name in w.nodes for w in ahead)]
    step = _width(desired, nodes)
    return (*ahead, *(Wave(tuple(rest[i : i + step])) for i in range(0, len(rest), step)))


def _width(desired: DesiredState, nodes: Mapping[str, NodePlan]) -> int:
    down = sum(1 for node in nodes.values() if node.failure is not None)
    return width(desired.rollout.max_unavailable, len(desired.nodes), down)
