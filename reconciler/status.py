"""What the journal says: pure views over its records. Each is the one place where a record's meaning is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from reconciler.model.observed import Known

Record = Mapping[str, Any]
GOOD = ("converged", "unchanged")  # ends of a node that leave nothing to be seen to
TIMINGS_KEPT = 20  # the latest steps of one kind that an estimate is made from


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is known of a node: its last plan and its last apply, and when (Unix seconds)."""

    name: str
    cluster: str
    plan: str | None = None
    planned: float | None = None
    changes: int | None = None
    held: int | None = None
    outcome: str | None = None
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    applied: float | None = None
    commit: str | None = None
    after_plan: bool = False  # the apply's end stands behind the last plan in the journal: no clock says that, it may be set back

    @property
    def settled(self) -> bool:
        """As declared, for all that is known: the last plan found nothing to do, or an apply after it did all of it."""
        if self.changes is None or self.held:
            return False
        if self.outcome is not None and self.after_plan:
            return self.outcome in GOOD
        return self.changes == 0


def known(records: Iterable[Record]) -> Known:
    """What the planner needs of the past: specs that were converged, and how long steps took (median of the latest)."""
    converged: dict[str, dict[str, str]] = {}
    timings: dict[str, list[float]] = {}
    for record in records:
        if record["type"] == "converged":
            converged.setdefault(record["node"], {}).update(record["resources"])
        elif record["type"] == "outcome" and record["state"] == "done":
            timings.setdefault(record["title"], []).append(record["seconds"])
    return Known(converged, {title: median(seconds[-TIMINGS_KEPT:]) for title, seconds in timings.items()})


def used_plans(records: Iterable[Record]) -> frozenset[str]:
    """Ids of saved plans that an apply has begun to carry out: each counts once, however it ended."""
    return frozenset(record["plan"] for record in records if record["type"] == "apply-started" and record.get("saved"))


def said_before(records: Sequence[Record], about: Mapping[str, Any], since: float) -> bool:
    """Whether the journal's last word is a plan that said the same, after `since` (Unix seconds)."""
    last = next((r for r in reversed(records) if r["type"] not in ("lease", "converged")), None)
    if last is None or last["type"] != "planned" or last["time"] < since:
        return False
    return all(last[name] == value for name, value in about.items())


def nodes(records: Iterable[Record]) -> dict[str, NodeStatus]:
    """Each node's last plan and last outcome."""
    found: dict[str, dict[str, Any]] = {}
    commits: dict[str, tuple[str, str | None]] = {}
    for record in records:
        if record["type"] in ("planned", "apply-started"):
            commits[record["plan"]] = (record["cluster"], record["commit"])
        if record["type"] == "planned":
            for name, counts in record["nodes"].items():
                status = found.setdefault(name, {"name": name})
                status.update(cluster=record["cluster"], plan=record["plan"], planned=record["time"], commit=record["commit"])
                status.update(changes=counts.get("changes"), held=counts.get("held"), after_plan=False)
        elif record["type"] == "node-finished":
            cluster, commit = commits.get(record["plan"], ("", None))
            status = found.setdefault(record["node"], {"name": record["node"], "cluster": cluster})
            status.update(outcome=record["end"], reason=record["reason"], data=record["data"], after_plan=True)
            status.update(applied=record["time"], commit=commit)
    return {name: NodeStatus(**fields) for name, fields in sorted(found.items())}


@dataclass(frozen=True, slots=True)
class Apply:
    """One apply in the history; `exit` None: it did not come to its end (killed, or still at work)."""

    plan: str
    cluster: str
    commit: str | None
    started: float
    finished: float | None
    exit: int | None
    nodes: Mapping[str, str]
    steps: int


def applies(records: Iterable[Record]) -> tuple[Apply, ...]:
    """Every apply that wrote something or tried to, oldest first."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        apply = found.get(record.get("plan", ""))
        if record["type"] == "apply-started":
            found[record["plan"]] = {
                "plan": record["plan"],
                "cluster": record["cluster"],
                "commit": record["commit"],
                "started": record["time"],
                "finished": None,
                "exit": None,
                "nodes": {},
                "steps": 0,
            }
        elif record["type"] == "recovered":  # from a node's own records, after the journal was lost
            _recover(found, record)
        elif apply is None:
            continue
        elif record["type"] == "intent":
            apply["steps"] += 1
        elif record["type"] == "node-finished":
            apply["nodes"][record["node"]] = record["end"]
        elif record["type"] == "apply-finished":
            apply.update(finished=record["time"], exit=record["exit"])
    return tuple(Apply(**fields) for fields in found.values())


def _recover(found: dict[str, dict[str, Any]], record: Record) -> None:
    apply = found.setdefault(
        record["plan"],
        {
            "plan": record["plan"],
            "cluster": record["cluster"],
            "commit": None,
            "started": record["wall"],
            "finished": None,
            "exit": None,
            "nodes": {},
            "steps": 0,
        },
    )
    apply["steps"] += 1
    apply["started"] = min(apply["started"], record["wall"])
    apply["nodes"][record["node"]] = record["state"]
