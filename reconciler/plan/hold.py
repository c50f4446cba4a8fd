"""Leaving a node as it is although it differs: what would be written becomes held, and nothing runs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.desired import DesiredState
from reconciler.model.observed import Known
from reconciler.model.plan import WRITING, Action, Change, HoldReason, NodePlan, Plan
from reconciler.plan.cost import cost
from reconciler.plan.order import waves


def held_change(change: Change, why: HoldReason | None) -> Change:
    """What would be written is left as it is. It keeps its fields and its reason (Git or drift), so that it still is seen."""
    return replace(change, action=Action.HOLD, hold=why, steps=()) if why and change.action in WRITING else change


def held_node(node: NodePlan, why: HoldReason) -> NodePlan:
    """The node's plan without a step."""
    return NodePlan(node.name, tuple(held_change(c, why) for c in node.changes), failure=node.failure)


def hold_back(plan: Plan, desired: DesiredState, known: Known, why: Mapping[str, HoldReason]) -> Plan:
    """The plan with the nodes of `why` left as they are; the order and the cost are those of the others."""
    held = {name: reason for name, reason in why.items() if name in plan.nodes and plan.nodes[name].writes()}
    if not held:
        return plan
    nodes = {name: held_node(node, held[name]) if name in held else node for name, node in plan.nodes.items()}
    return replace(plan, nodes=nodes, waves=waves(desired, nodes), cost=cost(nodes, known.durations))
