"""Which nodes change when, and what a plan costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.model.desired import DesiredNode, Origin, ResourceId, SshAccess
from reconciler.model.observed import Failure
from reconciler.model.plan import Action, Change, Cost, HoldReason, NodePlan, Reason, Step, Wave
from reconciler.plan.cost import cost
from reconciler.plan.order import waves, width
from tests.cases import load
from tests.plan.worlds import state

STEP = Step(1, "write-file", (), {"file": {}})


def _plan(name: str, what: str) -> NodePlan:
    if what == "down":
        return NodePlan(name, failure=Failure("unreachable", "ConnectTimedOut"))
    if what == "left":
        hold = HoldReason("PolicyObserve")
        change = Change(ResourceId("File", "/a"), Action.HOLD, Origin("s.yaml"), "d", Reason.DRIFT, hold=hold)
        return NodePlan(name, (change,))
    return NodePlan(name, steps=(STEP,) if what == "todo" else ())


def _shown(wave: Wave) -> Any:
    if not wave.canary:
        return list(wave.nodes)
    return "*" + ",".join(wave.nodes) + (f" for {wave.instead_of}" if wave.instead_of else "")


@pytest.mark.parametrize("case", load("plan/waves.yaml"))
def test_waves(case: Mapping[str, Any]) -> None:
    about = {name: what.split() for name, what in case["nodes"].items()}
    nodes = [DesiredNode(n, SshAccess(n), (), profile=what[1] if len(what) > 1 else None) for n, what in about.items()]
    desired = state(*nodes, canary=case.get("canary"), max_unavailable=case.get("max", "1"))
    plans = {name: _plan(name, what[0]) for name, what in about.items()}
    found = waves(desired, plans)
    assert [_shown(wave) for wave in found] == case["waves"]


WIDTHS = [("1", 10, 0, 1), ("3", 10, 0, 3), ("3", 10, 2, 1), ("3", 10, 9, 1), ("25%", 10, 0, 2), ("100%", 7, 0, 7), ("1%", 7, 0, 1)]


@pytest.mark.parametrize(("allowed", "total", "down", "expected"), WIDTHS)
def test_how_many_side_by_side(allowed: str, total: int, down: int, expected: int) -> None:
    assert width(allowed, total, down) == expected


def test_cost_is_the_longest_nodes_time_and_unknown_where_a_step_was_never_timed() -> None:
    steps = (STEP, Step(2, "package-transaction", (), {}))
    nodes = {"a": NodePlan("a", steps=steps), "b": NodePlan("b", steps=steps[:1]), "c": NodePlan("c")}
    assert cost(nodes, {"write-file": 0.25, "package-transaction": 40.0}) == Cost(3, 1, 0, 0, 40.2)
    assert cost(nodes, {"write-file": 0.25}) == Cost(3, 1, 0, 0, None)
    assert cost({}, {}) == Cost(0, 0, 0, 0, 0.0)
