"""Fields of a fragment's JSON, judged one by one: a node may answer anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Raw, Unknown, Value

_STRANGE = Unknown("UnexpectedAnswer")


def failure(code: Any, missing: str, said: Any = "") -> Absent | Unknown:
    """What an error code of the node program means; `missing` is the reason for what is not there."""
    if code == "missing":
        return Absent(missing)
    found = raw.file_text(Raw(error=code, err=str(said).encode("utf-8", "replace"))) if isinstance(code, str) and code else None
    return found if isinstance(found, Absent | Unknown) else _STRANGE


def text(found: Any, missing: str = "NoSuchFile") -> Fact[str]:
    """A text, or `{"error": code}` in its place; Absent(`missing`) for null."""
    if isinstance(found, str):
        return Value(found)
    if isinstance(found, Mapping) and "error" in found:
        return failure(found["error"], missing, found.get("said", ""))
    return Absent(missing) if found is None else _STRANGE


def flag(found: Any) -> Fact[bool]:
    return Value(found) if isinstance(found, bool) else _STRANGE


def number(found: Any, missing: str) -> Fact[int]:
    """A whole number from 0; Absent(`missing`) for null."""
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return Value(found)
    return Absent(missing) if found is None else _STRANGE


def mapping(found: Any) -> dict[str, Any]:
    """A JSON object, an empty one for anything else."""
    return dict(found) if isinstance(found, Mapping) else {}


def items(found: Any) -> tuple[Any, ...]:
    """A JSON array, an empty one for anything else."""
    return tuple(found) if isinstance(found, list) else ()
