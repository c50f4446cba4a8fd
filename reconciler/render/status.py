"""Status and history for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, duration, safe, table
from reconciler.status import Apply, NodeStatus


def _age(now: float, then: float | None) -> str:
    return "never" if then is None else f"{duration(max(0.0, now - then))} ago"


def nodes(found: Mapping[str, NodeStatus], now: float, style: Style) -> list[str]:
    """One line a node: what its last plan said, how its last apply ended, and when."""
    if not found:
        return ["nothing is known yet: no plan and no apply was made from this state directory"]
    open_ = [n for n in found.values() if not n.settled]
    verdict = (
        f"{count(len(found), 'node')}, all as planned"
        if not open_
        else f"{len(open_)} of {count(len(found), 'node')} not as declared"
    )
    rows = [("node", "last plan", "planned", "last apply", "applied", "commit")]
    for node in found.values():
        plan = "not observed" if node.changes is None else f"{count(node.changes, 'change')}, {node.held} held"
        outcome = safe(node.outcome or "none") + (f": {safe(sentence(node.reason, node.data), 60)}" if node.reason else "")
        commit = safe(node.commit[:8]) if node.commit else "-"
        rows.append((safe(node.name), plan, _age(now, node.planned), outcome, _age(now, node.applied), commit))
    return [style(verdict, "bold", "yellow" if open_ else "green"), *table(rows)]


def applies(found: Sequence[Apply], now: float, style: Style) -> list[str]:
    """One line an apply, newest first."""
    if not found:
        return ["nothing was applied yet"]
    rows = [("plan", "when", "commit", "exit", "steps", "nodes")]
    for apply in reversed(found):
        ends: dict[str, int] = {}
        for end in apply.nodes.values():
            ends[end] = ends.get(end, 0) + 1
        exit_ = "not finished" if apply.exit is None else str(apply.exit)
        told = ", ".join(f"{number} {safe(end)}" for end, number in ends.items()) or "-"
        commit = safe(apply.commit[:8]) if apply.commit else "-"
        rows.append((safe(apply.plan), _age(now, apply.started), commit, exit_, str(apply.steps), told))
    return [style(count(len(found), "apply"), "bold"), *table(rows)]


def records(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every record of one apply, as it was written."""
    out = []
    for record in found:
        when = datetime.fromtimestamp(record["time"]).astimezone().isoformat(timespec="milliseconds")
        rest = {k: v for k, v in record.items() if k not in ("seq", "time", "type", "plan")}
        out.append(f"{when}  {safe(record['type']):<14} " + " ".join(f"{safe(k)}={safe(v, 120)}" for k, v in rest.items()))
    return out
