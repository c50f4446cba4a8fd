"""A plan's JSON, as `--json` prints it, read back as the value that it was made from, for those who only show it.

What JSON leaves out stays empty: steps, diffs, the digests of specs. Raises KeyError, TypeError or ValueError where it is no plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.desired import Origin, ResourceId, Revision
from reconciler.model.observed import Failure
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Action, Change, Cost, FieldChange, HoldReason, NodePlan, Plan, Reason, Selection, Wave


def plan(found: Mapping[str, Any]) -> Plan:
    """The whole plan."""
    cost, selection = found["cost"], found["selection"]
    return Plan(
        id=found["id"],
        created=float(found["created"]),
        cluster=found["cluster"],
        revision=Revision(found["commit"], str(found.get("summary", "")), dirty=bool(found["dirty"])),
        manifest_digest=found["manifestDigest"],
        tool_version=found["toolVersion"],
        selection=Selection(tuple(selection["nodes"]), tuple(selection["targets"])),
        nodes={name: _node(name, node) for name, node in found["nodes"].items()},
        waves=tuple(Wave(tuple(w["nodes"]), bool(w["canary"]), w["insteadOf"]) for w in found["waves"]),
        cost=Cost(cost["steps"], cost["transactions"], cost["reboots"], cost["interrupts"], cost["seconds"]),
    )


def _node(name: str, found: Mapping[str, Any]) -> NodePlan:
    why = found["failure"]
    return NodePlan(
        name,
        changes=tuple(map(_change, found["changes"])),
        observed=found["observed"],
        digest=found["digest"],
        failure=Failure(why["kind"], why["reason"], why.get("data", {})) if why else None,
    )


def _change(found: Mapping[str, Any]) -> Change:
    kind, _, name = found["resource"].partition("/")
    hold = found["hold"]
    return Change(
        id=ResourceId(kind, name),
        action=Action(found["action"]),
        origin=_origin(found["origin"]),
        spec_digest="",
        reason=Reason(found["reason"]) if found["reason"] else None,
        fields=tuple(FieldChange(f["path"], f["before"], f["after"]) for f in found["fields"]),
        hold=HoldReason(hold["code"], hold["data"]) if hold else None,
        steps=tuple(found["steps"]),
    )


def _origin(text: str) -> Origin:
    """From `file:line:column`."""
    file, line, column = text.rsplit(":", 2)
    return Origin(file, int(line), int(column))


def outcomes(found: Mapping[str, Any]) -> dict[str, NodeOutcome]:
    """Each node's end, from a `finished` event."""
    return {name: outcome(one) for name, one in found.items()}


def outcome(found: Mapping[str, Any]) -> NodeOutcome:
    """One node's end, from there or from a `node-finished` event, which does not count what is held."""
    held = found.get("held", 0)
    return NodeOutcome(End(found["end"]), changed=found["changed"], held=held, reason=found["reason"], data=found["data"])
