"""Plans that wait for a person: which nodes wait, and whether the plan that waits is still the one that would be made now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.apply.statedir import write_atomically
from reconciler.errors import ReconcileError, StateDamaged
from reconciler.model.plan import Plan
from reconciler.plan import saved as saved_plan
from reconciler.plan.stale import covered, moved

_ID = re.compile(r"[0-9a-f]{12}")


def waiting(plan: Plan, kinds: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Nodes whose plan has a writing change of `kinds`, and of which: all of such a node waits (docs/adr/0027)."""
    asked = set(kinds)
    found = {name: tuple(sorted({c.id.kind for c in node.writes()} & asked)) for name, node in plan.nodes.items()}
    return {name: of for name, of in found.items() if of}


def still_fits(saved: Mapping[str, Any], fresh: Plan, nodes: Iterable[str]) -> bool:
    """Whether a plan that waits is what would be made now for the nodes that wait now."""
    return set(covered(saved)) == set(nodes) and not moved(saved, fresh)


@dataclass(frozen=True, slots=True)
class Pending:
    """A plan that waits, as JSON, and who approved it (empty: nobody yet)."""

    plan: Mapping[str, Any]
    by: str = ""

    @property
    def id(self) -> str:
        return str(self.plan["id"])


def what_waits(pending: Pending | None) -> tuple[str, dict[str, Any]]:
    """The reason code of it, with its data."""
    if pending is None:
        return "NothingWaits", {}
    return "WaitingApproved" if pending.by else "Waiting", {"plan": pending.id, "by": pending.by}


class Approvals:
    """`stateDir/approvals`: at most one plan waits at a time. What is approved is removed before it is carried out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pending(self) -> Pending | None:
        """The plan that waits. Raises StateDamaged for a file that is not what `keep` writes."""
        files = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        for file in files:
            try:
                found = json.loads(file.read_bytes())
                return Pending(saved_plan.parse(json.dumps(found["plan"]), str(file)), str(found["by"]))
            except (OSError, ValueError, KeyError, TypeError, RecursionError, ReconcileError) as e:
                raise StateDamaged("ApprovalUnreadable", path=str(file), detail=type(e).__name__) from None
        return None

    def keep(self, pending: Pending) -> None:
        """In place of any other."""
        if not _ID.fullmatch(pending.id):
            raise ValueError(f"no plan id: {pending.id!r}")
        write_atomically(self._folder / f"{pending.id}.json", json.dumps({"plan": dict(pending.plan), "by": pending.by}).encode())
        self._drop(but=pending.id)

    def clear(self) -> None:
        self._drop(but="")

    def _drop(self, *, but: str) -> None:
        for file in self._folder.glob("*.json"):
            if file.stem != but:
                file.unlink(missing_ok=True)
