"""What pin and fetch did, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.observed import Failure
from reconciler.model.plan import HoldReason
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, safe

SHOWN = 20


def pinned(told: Mapping[str, Any], style: Style) -> list[str]:
    """One line a lock, and one for each version that is another now."""
    lines = [f"{safe(told['lock'])}: {count(told['packages'], 'package')}, {_state(told, style)}"]
    for moved in told["moved"][:SHOWN]:
        lines.append(f"  {safe(moved['name'])} {safe(moved['before'] or '-')} -> {safe(moved['after'] or '-')}")
    if len(told["moved"]) > SHOWN:
        lines.append(f"  and {len(told['moved']) - SHOWN} more")
    return lines


def _state(told: Mapping[str, Any], style: Style) -> str:
    if not told["changed"]:
        return "unchanged"
    done = ("removed" if told["written"] else "would be removed") if told["removed"] else None
    said = style(done or ("written" if told["written"] else "would be another"), "bold")
    return f"{said}: nothing declares a version for it" if told["removed"] else said


def refusals(found: Sequence[HoldReason]) -> list[str]:
    """Why a lock cannot be made, a line each."""
    return [sentence(why.code, why.data) for why in found]


def refused(failures: Mapping[str, Failure], found: Sequence[HoldReason]) -> dict[str, Any]:
    """The same, and the nodes that could not be asked, for a program."""
    nodes = {n: {"kind": f.kind, "reason": f.reason, "message": sentence(f.reason, f.data)} for n, f in failures.items()}
    return {"failures": nodes, "refused": refusals(found)}


def unseen(path: str) -> str:
    return f"note: no node that was asked runs the distribution of {safe(path)}: it stays as it is"


def fetched(told: Mapping[str, Any], house: str) -> str:
    """What one lock's files needed."""
    new = [f"{count(len(told[key]), 'file')} {key}" for key in ("downloaded", "built") if told[key]]
    also = "; its lock has the hash of what was built: commit it" if told["built"] else ""
    return f"{safe(told['lock'])}: {count(told['files'], 'file')} in {safe(house)}, {', '.join(new) or 'nothing new'}{also}"
