"""What a turn found of a node, as its conditions; and what is worth another try."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controller import verdicts
from reconciler.controller.assess import of_node
from reconciler.controller.conditions import Status
from reconciler.controller.suspensions import Suspension
from reconciler.model.desired import Origin, ResourceId
from reconciler.model.observed import Failure
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Action, Change, FieldChange, HoldReason, NodePlan, Reason, Step

TRUE, UNKNOWN = Status.TRUE, Status.UNKNOWN


def change(action: Action = Action.UPDATE, **more: Any) -> Change:
    about = {"fields": (FieldChange("content", "x", "y"),), "reason": Reason.DRIFT, **more}
    return Change(
        ResourceId(more.pop("kind", "File"), "/a"), action, Origin("s.yaml"), "d", **{k: v for k, v in about.items() if k != "kind"}
    )


REBOOT = Step(1, "reboot", (), {"reboot": {"left": []}})
CONVERGED, UNTOUCHED = NodeOutcome(End.CONVERGED, 1), NodeOutcome(End.UNCHANGED)
UNTIL = Suspension("disk", 99.0, "ada")
# plan, outcome, suspension -> conditions that are True, and Ready's reason
NODES: dict[str, tuple[NodePlan, NodeOutcome | None, Suspension | None, set[str], str]] = {
    "as declared": (NodePlan("n", (change(Action.NONE, reason=None),)), UNTOUCHED, None, {"Ready"}, "AsDeclared"),
    "drift that was healed": (NodePlan("n", (change(),)), CONVERGED, None, {"Ready"}, "AsDeclared"),
    "drift that was not": (
        NodePlan("n", (change(),)),
        NodeOutcome(End.FAILED, reason="StepFailed"),
        None,
        {"Drifted", "Reconciling"},
        "StepFailed",
    ),
    "skipped": (
        NodePlan("n", (change(reason=Reason.GIT),)),
        NodeOutcome(End.SKIPPED, reason="CanaryFailed"),
        None,
        {"Reconciling"},
        "CanaryFailed",
    ),
    "held": (
        NodePlan("n", (change(Action.HOLD, reason=None, hold=HoldReason("StillNeeded")),)),
        UNTOUCHED,
        None,
        set(),
        "StillNeeded",
    ),
    "observed only": (
        NodePlan("n", (change(Action.HOLD, hold=HoldReason("PolicyObserve")),)),
        UNTOUCHED,
        None,
        {"Drifted"},
        "PolicyObserve",
    ),
    "flapping": (
        NodePlan("n", (change(Action.HOLD, hold=HoldReason("Flapping")),)),
        UNTOUCHED,
        None,
        {"Drifted", "Stalled"},
        "Flapping",
    ),
    "down": (
        NodePlan("n", failure=Failure("unreachable", "NoRoute")),
        NodeOutcome(End.UNREACHABLE, reason="NoRoute"),
        None,
        {"Unreachable", "Reconciling"},
        "NoRoute",
    ),
    "lost on the way": (
        NodePlan("n", (change(),)),
        NodeOutcome(End.LOST, reason="ConnectionLost"),
        None,
        {"Unreachable", "Reconciling"},
        "ConnectionLost",
    ),
    "another key": (
        NodePlan("n", failure=Failure("unreachable", "HostKeyChanged")),
        NodeOutcome(End.UNREACHABLE, reason="HostKeyChanged"),
        None,
        {"Unreachable", "Reconciling", "Stalled"},
        "HostKeyChanged",
    ),
    "garbled": (
        NodePlan("n", failure=Failure("garbled", "NotJson")),
        NodeOutcome(End.GARBLED, reason="NotJson"),
        None,
        {"Reconciling"},
        "NotJson",
    ),
    "suspended and well": (NodePlan("n"), UNTOUCHED, UNTIL, {"Suspended"}, "NodeSuspended"),
    "suspended and down": (
        NodePlan("n", failure=Failure("unreachable", "NoRoute")),
        None,
        UNTIL,
        {"Suspended", "Unreachable"},
        "NodeSuspended",
    ),
    "a restart is owed": (
        NodePlan("n", (change(kind="GpuDriver", reason=Reason.GIT, steps=(1,)),), (REBOOT,)),
        NodeOutcome(End.PREEMPTED),
        None,
        {"RebootRequired", "Reconciling"},
        "NotCarriedOut",
    ),
    "a restart is held": (
        NodePlan(
            "n",
            (
                change(
                    Action.HOLD,
                    kind="GpuDriver",
                    reason=None,
                    hold=HoldReason("GpuInUse"),
                    fields=(FieldChange("loaded", "1", "2"),),
                ),
            ),
        ),
        UNTOUCHED,
        None,
        {"RebootRequired"},
        "GpuInUse",
    ),
}


@pytest.mark.parametrize(("plan", "outcome", "suspension", "true", "ready"), NODES.values(), ids=NODES)
def test_conditions_of_a_node(
    plan: NodePlan, outcome: NodeOutcome | None, suspension: Suspension | None, true: set[str], ready: str
) -> None:
    said = {one.type: one for one in of_node(plan, outcome, suspension)}
    assert len(said) == 7
    assert {type_ for type_, one in said.items() if one.status is TRUE} == true
    assert said["Ready"].reason == ready
    if plan.failure:
        assert said["Drifted"].status is UNKNOWN


def test_what_needs_a_person_is_not_tried_again_and_all_else_is() -> None:
    assert verdicts.again([NodeOutcome(End.FAILED, reason="StepFailed")])
    assert verdicts.again([UNTOUCHED, NodeOutcome(End.UNREACHABLE, reason="NoRoute")])
    assert not verdicts.again([NodeOutcome(End.UNREACHABLE, reason="HostKeyChanged"), CONVERGED])
    assert not verdicts.again([])
