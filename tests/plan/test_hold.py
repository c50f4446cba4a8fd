"""Differences that are left alone: they keep what they are, have no step, and bind nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.kinds.base import spec_digest
from reconciler.model.desired import DesiredState
from reconciler.model.observed import Known, NodeState
from reconciler.model.plan import Action, Change, HoldReason, Plan, Reason, Selection, Wave
from reconciler.plan.hold import hold_back
from tests.plan.worlds import look, node, plan_of, state

WHY = HoldReason("NodeSuspended", {"reason": "disk"})
CASE: dict[str, Any] = {"declared": [{"file": "/a", "content": "x\n"}, {"file": "/b", "content": "y\n"}]}
NAMES = ("gpu01", "gpu02", "gpu03")


def desired(**policy: Any) -> DesiredState:
    return state(*(replace(node(CASE, name), policy=policy.get(name, "enforce")) for name in NAMES), max_unavailable="3")


def drifted() -> Known:
    """/a was as declared once on every node."""
    digest = spec_digest(node(CASE).resources[0].spec)
    return Known({name: {"File//a": digest} for name in NAMES})


def planned(wanted: DesiredState, known: Known) -> Plan:
    return plan_of(wanted, {n: NodeState(look(wanted.nodes[n], CASE, Selection()), "boot") for n in NAMES}, known)


def told(changes: tuple[Change, ...]) -> list[tuple[str, Action, Reason | None, str]]:
    return [(str(c.id), c.action, c.reason, c.hold.code if c.hold else "") for c in changes]


def test_observe_makes_every_change_a_held_one_that_still_says_what_it_is() -> None:
    free, plan = planned(desired(), drifted()), planned(desired(gpu01="observe"), drifted())
    held = plan.nodes["gpu01"]
    assert told(held.changes) == [
        ("File//a", Action.HOLD, Reason.DRIFT, "PolicyObserve"),
        ("File//b", Action.HOLD, Reason.GIT, "PolicyObserve"),
    ]
    assert [c.fields for c in held.changes] == [c.fields for c in free.nodes["gpu01"].changes]
    assert (held.steps, held.observed, plan.holds, plan.changes) == ((), {}, 2, 4)
    assert plan.waves == (Wave(("gpu02",), canary=True, instead_of="gpu01"), Wave(("gpu03",)))
    assert plan.nodes["gpu02"] == free.nodes["gpu02"]


def test_one_resource_is_left_alone_and_the_other_is_changed() -> None:
    known = replace(drifted(), withheld={"gpu02": {"File//a": HoldReason("Flapping")}})
    plan = planned(desired(), known)
    assert told(plan.nodes["gpu02"].changes)[0] == ("File//a", Action.HOLD, Reason.DRIFT, "Flapping")
    assert [str(r) for step in plan.nodes["gpu02"].steps for r in step.resources] == ["File//b"]
    assert set(plan.nodes["gpu02"].observed) == {"File//b"}
    assert len(plan.nodes["gpu01"].steps) == 2


def test_nodes_that_are_held_back_leave_the_order_to_the_others() -> None:
    wanted, known = desired(), drifted()
    plan = planned(wanted, known)
    assert hold_back(plan, wanted, known, {"gpu09": WHY}) is plan
    back = hold_back(plan, wanted, known, {"gpu01": WHY, "gpu03": WHY})
    assert [wave.nodes for wave in back.waves] == [("gpu02",)]
    assert (back.cost.steps, back.holds, back.id) == (2, 4, plan.id)
    assert hold_back(back, wanted, known, {"gpu01": HoldReason("Other")}) is back  # what is held already stays so
