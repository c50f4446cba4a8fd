"""What pin and fetch did, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.render.style import Style
from reconciler.render.text import count, safe

SHOWN = 20


def pinned(told: Mapping[str, Any], style: Style) -> list[str]:
    """One line a lock, and one for each version that is another now."""
    state = style("written", "bold") if told["changed"] else "unchanged"
    lines = [f"{safe(told['lock'])}: {count(told['packages'], 'package')}, {state}"]
    for moved in told["moved"][:SHOWN]:
        lines.append(f"  {safe(moved['name'])} {safe(moved['before'] or '-')} -> {safe(moved['after'] or '-')}")
    if len(told["moved"]) > SHOWN:
        lines.append(f"  and {len(told['moved']) - SHOWN} more")
    return lines


def fetched(told: Mapping[str, Any], house: str) -> str:
    """What one lock's files needed."""
    new = [f"{count(len(told[key]), 'file')} {key}" for key in ("downloaded", "built") if told[key]]
    also = "; its lock has the hash of what was built: commit it" if told["built"] else ""
    return f"{safe(told['lock'])}: {count(told['files'], 'file')} in {safe(house)}, {', '.join(new) or 'nothing new'}{also}"
