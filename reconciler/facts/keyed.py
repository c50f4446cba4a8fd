"""Answers from blocks of `key: value` text and from JSON objects: a key that is not there is Unknown, never a default."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from typing import Any, TypeVar

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

T = TypeVar("T")
MISSING = Unknown("Missing")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]{1,32}|[0-9]{1,30})\b")
_RATE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?\b")
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()
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


def pairs(rest: str, keys: Set[str]) -> dict[str, str]:
    """Value of each of `keys` in a line such as `mtu 1500 qdisc mq state UP`; other words stand for themselves."""
    said: dict[str, str] = {}
    words = rest.split()
    at = 0
    while at + 1 < len(words):
        if words[at] in keys:
            said.setdefault(words[at], words[at + 1])
            at += 1
        at += 1
    return said


def objects(content: str) -> tuple[list[dict[str, Any]], bool] | None:
    """The objects of a JSON array and whether the text is cut or damaged behind them; None where the text is no such array."""
    content = content.strip()
    if not content.startswith("["):
        return None
    found: list[dict[str, Any]] = []
    at = _BETWEEN.match(content, 1)
    while at and at.end() < len(content) and content[at.end()] != "]":
        try:
            item, end = _DECODER.raw_decode(content, at.end())
        except (ValueError, RecursionError):
            return found, True
        if isinstance(item, dict):
            found.append(item)
        at = _BETWEEN.match(content, end)
    return found, not content.endswith("]")


def member(item: Mapping[str, Any], key: str, kind: type[T]) -> Fact[T]:
    """One member of a JSON object; Unknown where it is missing or of another type."""
    found = item.get(key)
    if found is None:
        return MISSING
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        return Unknown("UnreadableCell", raw.clean(str(found)[:80]))
    return Value(found)
