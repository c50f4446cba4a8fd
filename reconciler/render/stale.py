"""Why a saved plan is refused: the field that moved, before and now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.render.text import safe


def moved_lines(data: Mapping[str, Any]) -> list[str]:
    """One line a field that is not as it was when the plan was made."""
    out = []
    for moved in data.get("moved", ()):
        where = f"{safe(moved.node)}: " if moved.node else ""
        out.append(f"  {where}{safe(moved.path)} was {_shown(moved.before)}, is now {_shown(moved.after)}")
    return out


def _shown(value: Any) -> str:
    return "absent" if value is None else safe(value, 80)
