"""What a plan takes, from what it does and how long the same steps took before."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.plan import Cost, NodePlan


def cost(nodes: Mapping[str, NodePlan], durations: Mapping[str, float]) -> Cost:
    """Steps, package transactions and reboots over all nodes; `seconds` is the longest node's, None where a kind of step was never
    timed."""
    steps = [step for node in nodes.values() for step in node.steps]
    timed = all(step.title in durations for step in steps)
    each = [sum(durations.get(step.title, 0.0) for step in node.steps) for node in nodes.values()]
    return Cost(
        steps=len(steps),
        transactions=sum(1 for step in steps if step.title == "package-transaction"),
        reboots=sum(1 for step in steps if step.title == "reboot"),
        interrupts=sum(1 for step in steps if step.title in ("restart-unit", "stop-unit")),
        seconds=round(max(each, default=0.0), 1) if timed else None,
    )
