"""Answers from blocks of `key: value` text: a key that is not there is Unknown, never a default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

MISSING = Unknown("Missing")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]{1,32}|[0-9]{1,30})\b")
_RATE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?\b")
_UNASSIGNED = (0, 0xFFFF)  # InfiniBand: 0 and the permissive LID are no address of a port


def word(block: Mapping[str, str], key: str) -> Fact[str]:
    """The text behind a key."""
    said = block.get(key)
    if said is None:
        return MISSING
    return Value(said) if said else Unknown("Empty")


def number(block: Mapping[str, str], key: str) -> Fact[int]:
    """The whole number, decimal or 0x, that the text behind a key begins with."""
    said = word(block, key)
    if not isinstance(said, Value):
        return said
    found = _NUMBER.match(said.value)
    return (
        Value(int(found[0], 16 if found[0][:2] in ("0x", "0X") else 10))
        if found
        else Unknown("NotANumber", raw.clean(said.value, 80))
    )


def rate(block: Mapping[str, str], key: str) -> Fact[float]:
    """The number, with or without a fraction, that the text behind a key begins with."""
    said = word(block, key)
    if not isinstance(said, Value):
        return said
    found = _RATE.match(said.value)
    if not found:
        return Unknown("NotANumber", raw.clean(said.value, 80))
    return Value(float(found[0]) if "." in found[0] else int(found[0]))


def lid(block: Mapping[str, str], key: str) -> Fact[int]:
    """An InfiniBand local identifier; Absent(Unassigned) for 0 and 65535."""
    found = number(block, key)
    return Absent("Unassigned") if isinstance(found, Value) and found.value in _UNASSIGNED else found


def split(line: str) -> tuple[str, str] | None:
    """Key, in small letters, and value of a `key: value` line."""
    key, colon, value = line.partition(":")
    key = key.strip().lower()
    return (key, value.strip()) if colon and key and len(key) < 40 else None
