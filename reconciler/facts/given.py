"""Pieces of a fragment's answer, each judged for itself: a node may say anything, and one wrong piece loses no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

WRONG = Unknown("WrongPiece")


def mapping(item: Any, key: str) -> Mapping[str, Any]:
    """A part of the answer that holds others; empty where it is not there or something else."""
    found = item.get(key) if isinstance(item, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _failed(found: Any, missing: str) -> Absent | Unknown:
    """`{"error": code}` where a fragment could not read something; Unknown(WrongPiece) for anything else."""
    if isinstance(found, Mapping) and isinstance(code := found.get("error"), str):
        said = found.get("said")
        return raw.unread(code, missing, said if isinstance(said, str) else "")
    return WRONG


def text(item: Mapping[str, Any], key: str, missing: str = "NoSuchFile") -> Fact[str]:
    """A text, stripped. Unknown(Missing) where the answer does not speak of it, Unknown(Empty) where it is blank."""
    if key not in item:
        return Unknown("Missing", key)
    found = item[key]
    if not isinstance(found, str):
        return _failed(found, missing)
    return Value(found.strip()) if found.strip() else Unknown("Empty")


def whole(item: Mapping[str, Any], key: str) -> Fact[int]:
    """A whole number."""
    if key not in item:
        return Unknown("Missing", key)
    found = item[key]
    return Value(found) if isinstance(found, int) and not isinstance(found, bool) else _failed(found, "Missing")


def flag(item: Mapping[str, Any], key: str) -> Fact[bool]:
    """Yes or no."""
    if key not in item:
        return Unknown("Missing", key)
    found = item[key]
    return Value(found) if isinstance(found, bool) else _failed(found, "Missing")


def texts(item: Mapping[str, Any], key: str, missing: str = "NoSuchFile") -> Fact[tuple[str, ...]]:
    """A list of texts; Unknown(WrongPiece) where one of them is none."""
    found = item.get(key)
    if not isinstance(found, list):
        return _failed(found, missing) if key in item else Unknown("Missing", key)
    return Value(tuple(found)) if all(isinstance(each, str) for each in found) else WRONG


def objects(item: Mapping[str, Any], key: str, missing: str = "NoSuchFile") -> Fact[tuple[Mapping[str, Any], ...]]:
    """A list of objects; the same."""
    found = item.get(key)
    if not isinstance(found, list):
        return _failed(found, missing) if key in item else Unknown("Missing", key)
    return Value(tuple(found)) if all(isinstance(each, Mapping) for each in found) else WRONG
