"""Somebody else keeps changing it back: the same field of the same resource healed again and again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.plan import HoldReason, NodePlan, Reason

Record = Mapping[str, Any]
TIMES, WINDOW = 3, 3600.0  # healings of one field within so many seconds that make it flapping


def healed(node: NodePlan) -> dict[str, list[list[Any]]]:
    """Fields that a carried out plan set back after drift: resource -> [path, before, after], for the journal."""
    return {
        str(change.id): [[f.path, f.before, f.after] for f in change.fields if f.moves] or [["", None, None]]
        for change in node.writes()
        if change.reason is Reason.DRIFT
    }


def flapping(
    records: Iterable[Record], commit: str | None, times: int = TIMES, window: float = WINDOW
) -> dict[str, dict[str, HoldReason]]:
    """Per node the resources that flap under revision `commit`, and so are left alone until `resume` or another revision.

    A field counts once a healing; a clock that was set back makes healings nearer to each other, never farther.
    """
    seen: dict[tuple[str, str, str], list[float]] = {}
    found: dict[str, dict[str, HoldReason]] = {}
    for record in records:
        if record["type"] == "resumed":
            scope = record["scope"]
            seen = {key: at for key, at in seen.items() if scope and key[0] not in scope}
            found = {node: held for node, held in found.items() if scope and node not in scope}
        elif record["type"] == "healed" and record["commit"] == commit:
            for resource, fields in record["resources"].items():
                for path, before, after in fields:
                    at = seen.setdefault((record["node"], resource, path), [])
                    at[:] = [then for then in at if record["time"] - then <= window]
                    at.append(record["time"])
                    if len(at) >= times:
                        about = {"path": path or resource, "before": before, "after": after, "times": len(at), "window": window}
                        found.setdefault(record["node"], {}).setdefault(resource, HoldReason("Flapping", about))
    return found
