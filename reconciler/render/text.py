"""Small pieces of text that are safe on any terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

_NUMBERED = re.compile(r"^(.*?)([0-9]{1,6})$", re.DOTALL)  # a host list counts with six digits at most


def safe(value: Any, limit: int = 200) -> str:
    """`value` as text on one line, at most `limit` characters.

    What could move a cursor, turn the writing direction, hide text or end the printing (Unicode: not printable) is escaped.
    """
    text = str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def lines(value: str, count: int = 6) -> list[str]:
    """The last `count` lines of what a command said, each safe."""
    return [safe(line) for line in value.strip().splitlines()[-count:]]


def fold(names: Iterable[str]) -> str:
    """Slurm's host list of `names`: gpu[01-03,07]. Each name once."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in dict.fromkeys(map(safe, names)):
        if found := _NUMBERED.match(name):
            groups.setdefault((found[1], len(found[2])), []).append(int(found[2]))
        else:
            plain.append(name)
    return ",".join([*plain, *(_range(prefix, width, numbers) for (prefix, width), numbers in groups.items())])


def _range(prefix: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}d}"
    parts = []
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        parts.append(f"{found[0]:0{width}d}" + (f"-{found[-1]:0{width}d}" if len(found) > 1 else ""))
    return f"{prefix}[{','.join(parts)}]"


def count(number: int, noun: str) -> str:
    """`1 change`, `2 changes`."""
    plural = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else noun + "s"
    return f"{number} {noun if number == 1 else plural}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2 h`, `5 d`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as aligned columns, two blanks between."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
