"""`nvidia-smi --query-... --format=csv[,noheader][,nounits]`: GPUs, or processes with --query-compute-apps.

A message about one GPU stands between the rows, before or after the good ones: it is a fault, and there is a row less than GPUs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.facts import nvsmi, raw, text
from reconciler.facts.nvsmi import Fault
from reconciler.model.fact import Absent, Fact, Unknown, Value

_COLUMN = re.compile(r"^[a-z][A-Za-z0-9_.]*(?: \[[A-Za-z/%]+\])?$")


@dataclass(frozen=True, slots=True)
class Row:
    """One GPU or process: what stands in each column, as shown; by name as in the header (unit included), or by place."""

    cells: Mapping[str, Fact[str]] | tuple[Fact[str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All rows. `columns` is Absent(NoHeader) where neither the text nor who asked names them.

    `truncated`: the last line has no end, so that its last cell may be cut.
    """

    columns: Fact[tuple[str, ...]]
    rows: tuple[Fact[Row], ...]
    faults: tuple[Fault, ...]
    truncated: bool


class _Cells(dict[str, Fact[str]]):
    """Each text that stands in a cell is understood once: most are the same few."""

    def __missing__(self, key: str) -> Fact[str]:
        found = nvsmi.shown(key)
        self[key] = found
        return found


def _split(line: str) -> list[str]:
    """The cells of a line; a last one that is empty has lost its space where ends of lines were trimmed."""
    return (line + " " if line.endswith(",") else line).split(", ")


def _is_header(cells: Sequence[str]) -> bool:
    return all(_COLUMN.match(cell.strip()) for cell in cells)


def _row(cells: Sequence[str], count: int, columns: tuple[str, ...], known: _Cells) -> Fact[Row]:
    if len(cells) != count:
        return Unknown("ColumnCount", raw.clean(", ".join(cells)[:400], 120))
    found = tuple(map(known.__getitem__, cells))
    return Value(Row(dict(zip(columns, found, strict=True)) if columns else found))


def parse(saved: str, columns: tuple[str, ...] = ()) -> Fact[Table]:
    """All rows. `columns`: the names that were asked for, where the text has no header; one column without a name is no table."""
    rows: list[list[str]] = []
    faults: list[Fault] = []
    for line in text.clean(saved).split("\n"):
        if message := nvsmi.fault(line):
            faults.append(message)
        elif line.strip():
            rows.append(_split(line))
    if rows and _is_header(rows[0]):
        columns = tuple(cell.strip() for cell in rows.pop(0))
    if not rows and not columns:
        return nvsmi.nothing(saved, faults)
    count = len(columns) or Counter(map(len, rows)).most_common(1)[0][0]
    if count < 2 and not columns:
        return nvsmi.nothing(saved, faults)
    known = _Cells()
    found = tuple(_row(cells, count, columns, known) for cells in rows)
    if not found and faults:
        return nvsmi.nothing(saved, faults)
    return Value(Table(Value(columns) if columns else Absent("NoHeader"), found, tuple(faults), not saved.endswith("\n")))
