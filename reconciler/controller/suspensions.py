"""Suspensions: nodes, or the whole cluster, that a person took out until a time, with a reason. They end by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
CLUSTER = ""  # the scope of a suspension of all nodes


@dataclass(frozen=True, slots=True)
class Suspension:
    """`until` in Unix seconds."""

    reason: str
    until: float
    by: str

    @property
    def data(self) -> dict[str, Any]:
        return {"reason": self.reason, "until": self.until, "by": self.by}


def suspended(records: Iterable[Record], now: float) -> dict[str, Suspension]:
    """What is suspended at `now`, by node; CLUSTER for all. A resume of all ends every one; one of nodes ends theirs alone."""
    found: dict[str, Suspension] = {}
    for record in records:
        if record["type"] == "suspended":
            for name in record["scope"] or [CLUSTER]:
                found[name] = Suspension(record["reason"], record["until"], record["by"])
        elif record["type"] == "resumed":
            found = {name: s for name, s in found.items() if record["scope"] and name not in record["scope"]}
    return {name: s for name, s in found.items() if s.until > now}


def of_node(found: Mapping[str, Suspension], name: str) -> Suspension | None:
    """What holds for a node: its own, else the cluster's."""
    return found.get(name) or found.get(CLUSTER)
