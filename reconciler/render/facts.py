"""Parsed facts for people: one line a field, what is unknown with its reason."""

from __future__ import annotations

from typing import Any

from reconciler.render.reasons import sentence
from reconciler.render.text import safe


def lines(value: Any, indent: int = 0) -> list[str]:
    """A plain value as indented lines."""
    blank = "  " * indent
    if isinstance(value, dict):
        if "unknown" in value and set(value) <= {"unknown", "detail"}:
            detail = f" ({safe(value['detail'])})" if value.get("detail") else ""
            return [f"{blank}unknown: {sentence(str(value['unknown']), value)}{detail}"]
        if set(value) == {"absent"}:
            return [f"{blank}absent: {sentence(str(value['absent']), {})}"]
        return [line for key, item in value.items() for line in _item(safe(key), item, indent)]
    if isinstance(value, list):
        return [line for number, item in enumerate(value) for line in _item(str(number), item, indent)]
    return [f"{blank}{safe(value)}"]


def _item(name: str, value: Any, indent: int) -> list[str]:
    found = lines(value, indent + 1)
    if len(found) == 1:
        return [f"{'  ' * indent}{name}: {found[0].strip()}"]
    return [f"{'  ' * indent}{name}:", *found]
