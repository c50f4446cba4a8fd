"""What a turn found, as conditions: of one node, of a stack, of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.controller.conditions import TYPES, Said, Status, Subject, together
from reconciler.controller.suspensions import Suspension
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Change, NodePlan, Reason

# only a person can end these: trying again cannot help
NEEDS_PERSON = frozenset(
    {
        "HostKeyUnknown", "HostKeyChanged", "AuthenticationRefused", "BecomeRefused", "IdentityUnreadable", "NoPython",
        "NoSystemd", "NewerRecord", "DamagedRecord", "Flapping", "WaitingForApproval", "DriverDidNotLoad",
    }
)  # fmt: skip
_DONE = (End.UNCHANGED, End.CONVERGED)
_GONE = (End.UNREACHABLE, End.LOST)
TRUE, FALSE, UNKNOWN = Status.TRUE, Status.FALSE, Status.UNKNOWN


def of_node(plan: NodePlan, outcome: NodeOutcome | None, suspension: Suspension | None) -> list[Said]:
    """All conditions of one node after a turn; `outcome` None: nothing was carried out."""
    if failed := _failed(plan, outcome):
        reason, data, unreachable = failed
        said = _all(UNKNOWN, "NotObserved", ("Drifted", "RebootRequired"))
        said += [Said("Unreachable", TRUE if unreachable else FALSE, reason if unreachable else "", data if unreachable else {})]
        said += [Said("Ready", FALSE, reason, data), Said("Reconciling", TRUE, "Retrying", {"inner": reason, **data})]
    else:
        done = outcome is not None and outcome.end in _DONE
        left = plan.held() if done else (*plan.writes(), *plan.held())
        drifted = [c for c in left if c.reason is Reason.DRIFT]
        said = [Said("Unreachable", FALSE), _drifted(drifted), _reboot(plan, left), *_progress(plan, outcome, left)]
    stalled = _stalled(plan, outcome)
    said.append(Said("Stalled", TRUE, *stalled) if stalled else Said("Stalled", FALSE))
    shown = Said("Suspended", TRUE, "NodeSuspended", suspension.data) if suspension else Said("Suspended", FALSE)
    return [*_suspended(said, suspension), shown]


def _failed(plan: NodePlan, outcome: NodeOutcome | None) -> tuple[str, Mapping[str, Any], bool] | None:
    """Reason, data, and whether the node is out of reach."""
    if plan.failure:
        return plan.failure.reason, plan.failure.data, plan.failure.kind == "unreachable"
    if outcome and outcome.end in (*_GONE, End.GARBLED):
        return outcome.reason, outcome.data, outcome.end in _GONE
    return None


def _progress(plan: NodePlan, outcome: NodeOutcome | None, left: tuple[Change, ...]) -> list[Said]:
    """Ready and Reconciling of a node that answers."""
    if outcome is not None and outcome.end not in _DONE:
        about = outcome.reason or "NotCarriedOut", dict(outcome.data)
        return [Said("Ready", FALSE, *about), Said("Reconciling", TRUE, "Retrying", {"inner": about[0], **about[1]})]
    holds = [c for c in left if c.hold]
    if holds and holds[0].hold:
        first = holds[0].hold
        about = first.code, {**first.data, "resource": str(holds[0].id), "others": len(holds) - 1}
        return [Said("Ready", FALSE, *about), Said("Reconciling", FALSE)]
    if left:
        return [Said("Ready", FALSE, "NotCarriedOut", {"changes": len(left)}), Said("Reconciling", TRUE, "NotCarriedOut", {})]
    return [Said("Ready", TRUE, "AsDeclared", {"resources": len(plan.changes)}), Said("Reconciling", FALSE)]


def _drifted(changes: list[Change]) -> Said:
    if not changes:
        return Said("Drifted", FALSE)
    fields = [f.path for f in changes[0].fields if f.moves]
    about = {"resource": str(changes[0].id), "fields": fields, "others": len(changes) - 1}
    return Said("Drifted", TRUE, "NodeMoved", about)


def _reboot(plan: NodePlan, left: tuple[Change, ...]) -> Said:
    numbers = {step.number for step in plan.steps if "reboot" in step.action}
    owed = [c for c in left if numbers & set(c.steps) or (c.id.kind == "GpuDriver" and c.hold and _loads_other(c))]
    return Said("RebootRequired", TRUE, "RebootOwed", {"resource": str(owed[0].id)}) if owed else Said("RebootRequired", FALSE)


def _loads_other(change: Change) -> bool:
    return any(f.path == "loaded" and f.moves for f in change.fields)


def _stalled(plan: NodePlan, outcome: NodeOutcome | None) -> tuple[str, Mapping[str, Any]] | None:
    """Reason and data of the first thing that only a person can end."""
    holds = [c.hold for c in plan.held() if c.hold and c.hold.code in NEEDS_PERSON]
    if holds:
        return holds[0].code, holds[0].data
    for failed in (plan.failure, outcome):
        if failed and failed.reason in NEEDS_PERSON:
            return failed.reason, failed.data
    return None


def _suspended(said: list[Said], suspension: Suspension | None) -> list[Said]:
    """What is suspended is never shown green, whatever it is like."""
    if suspension is None:
        return said
    hidden = ("Ready", "Reconciling")
    return [one for one in said if one.type not in hidden] + _all(FALSE, "NodeSuspended", hidden, suspension.data)


def _all(status: Status, reason: str, types: tuple[str, ...], data: Mapping[str, Any] | None = None) -> list[Said]:
    return [Said(type_, status, reason, data or {}) for type_ in types]


def of_many(members: Mapping[str, Subject]) -> list[Said]:
    """Of a stack or a cluster: what its nodes come to, with the names of those that decide it."""
    said = []
    for type_ in TYPES:
        status = together(members.values(), type_)
        names = [name for name, m in members.items() if m.is_(type_, status)]
        whole = len(names) == len(members)
        said.append(Said(type_, status, "" if whole else "SomeNodes", {} if whole else {"nodes": names[:8], "count": len(names)}))
    return said
