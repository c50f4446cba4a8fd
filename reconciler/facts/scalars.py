"""Cells of saved output as numbers: what is no number says so, and nothing becomes 0."""

from __future__ import annotations

import re

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_NO_COMMAND = re.compile(r"^.{0,200}?\b(?:command not found|No such file or directory|not found)$")


def strange(cell: str, why: str = "NotANumber") -> Unknown:
    """A cell that is not what its column promises."""
    return Unknown(why, raw.clean(cell[:400], 120)) if cell.strip() else Unknown("Missing")


def real(cell: str) -> Fact[float]:
    """A finite number; hexadecimal, grouped, infinite and `nan` are Unknown."""
    if len(cell) > 400 or not _REAL.fullmatch(cell):
        return strange(cell)
    found = float(cell)
    return Value(found) if found - found == 0 else strange(cell, "OutOfRange")


def whole(cell: str) -> Fact[int]:
    """A whole number of at most 30 digits."""
    return Value(int(cell)) if _WHOLE.fullmatch(cell) else strange(cell)


def wanted(fields: dict[str, str], key: str) -> Fact[str]:
    """A text that has to be there: Unknown(Missing) where its key or its value is not."""
    found = fields.get(key, "")
    return Value(found) if found else Unknown("Missing", key)


def wanted_whole(fields: dict[str, str], key: str) -> Fact[int]:
    return whole(fields[key]) if fields.get(key) else Unknown("Missing", key)


def ended(clean: str) -> tuple[list[str], tuple[Unknown, ...]]:
    """The lines of a text that have an end, and Unknown(NoLineEnd) for a last one that has none: `2.6.` may be 2.6.0, cut."""
    lines = clean.split("\n")
    last = lines.pop()
    return lines, (Unknown("NoLineEnd", raw.clean(last[:400], 120)),) if last.strip() else ()


def no_command(found: list[str], command: str) -> Absent | None:
    """What a shell says for a command that is not there: `bash: chronyc: command not found`."""
    first = next((line for line in found if line.strip()), "")[:300]
    return Absent("NotInstalled") if command in first and _NO_COMMAND.match(first) else None
