"""Plans, outcomes and events as JSON: what `--json` prints and what a plan file holds. No file content and no secret is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.errors import ReconcileError
from reconciler.events import Event
from reconciler.model.observed import Failure
from reconciler.model.outcome import NodeOutcome
from reconciler.model.plan import Change, NodePlan, Plan
from reconciler.plan.stale import FORMAT
from reconciler.render.reasons import error as error_sentence
from reconciler.render.reasons import sentence


def plan(found: Plan, source: str) -> dict[str, Any]:
    """The whole plan. `source`: the repository or folder that it was made from, for `apply FILE`."""
    return {
        "format": FORMAT,
        "id": found.id,
        "created": found.created,
        "source": source,
        "cluster": found.cluster,
        "commit": found.revision.commit,
        "summary": found.revision.summary,
        "dirty": found.revision.dirty,
        "manifestDigest": found.manifest_digest,
        "toolVersion": found.tool_version,
        "selection": {"nodes": list(found.selection.nodes), "targets": list(found.selection.targets)},
        "changes": found.changes,
        "held": found.holds,
        "cost": {
            "steps": found.cost.steps,
            "transactions": found.cost.transactions,
            "reboots": found.cost.reboots,
            "interrupts": found.cost.interrupts,
            "seconds": found.cost.seconds,
        },
        "waves": [{"nodes": list(w.nodes), "canary": w.canary, "insteadOf": w.instead_of} for w in found.waves],
        "nodes": {name: _node(node) for name, node in found.nodes.items()},
    }


def _node(node: NodePlan) -> dict[str, Any]:
    why = node.failure
    return {
        "failure": _failure(why) if why else None,
        "digest": node.digest,
        "observed": {name: dict(fields) if fields is not None else None for name, fields in node.observed.items()},
        "changes": [_change(c) for c in node.changes],
        "steps": [{"number": s.number, "title": s.title, "resources": [str(r) for r in s.resources]} for s in node.steps],
    }


def _failure(why: Failure) -> dict[str, Any]:
    return {"kind": why.kind, "reason": why.reason, "data": dict(why.data), "message": sentence(why.reason, why.data)}


def _change(change: Change) -> dict[str, Any]:
    hold = change.hold
    return {
        "resource": str(change.id),
        "action": change.action.value,
        "reason": change.reason.value if change.reason else None,
        "origin": str(change.origin),
        "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in change.fields],
        "hold": {"code": hold.code, "data": dict(hold.data), "message": sentence(hold.code, hold.data)} if hold else None,
        "steps": list(change.steps),
    }


def outcomes(found: Mapping[str, NodeOutcome]) -> dict[str, Any]:
    """Each node's end."""
    return {
        name: {
            "end": o.end.value,
            "changed": o.changed,
            "held": o.held,
            "reason": o.reason,
            "message": sentence(o.reason, o.data) if o.reason else "",
            "data": dict(o.data),
        }
        for name, o in found.items()
    }


def event(found: Event) -> dict[str, Any]:
    """One line of the event stream."""
    fields = {name: value for name, value in found.data.items() if not isinstance(value, Plan)}
    return {"event": found.kind, "time": found.time, **({"node": found.node} if found.node else {}), **fields}


def error(caught: ReconcileError) -> dict[str, Any]:
    """An error that ended the command."""
    return {"error": {"reason": caught.reason, "message": error_sentence(caught), "transient": caught.transient}}
