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


def _read(saved: str) -> tuple[list[list[str]], list[Fault], bool]:
    """The cells of all lines, the messages between them, and whether the last row has no end."""
    whole, last = text.ended(saved)
    rows: list[list[str]] = []
    faults: list[Fault] = []
    for line in whole.split("\n"):
        if message := nvsmi.fault(line):
            faults.append(message)
        elif line and not line.isspace():
            rows.append(_split(line))
    cut = nvsmi.fault(last, whole=False)
    faults += [cut] if cut else []
    rows += [_split(last)] if last and not cut else []
    return rows, faults, bool(last) and not cut


def parse(saved: str, columns: tuple[str, ...] = ()) -> Fact[Table]:
    """All rows. `columns`: the names that were asked for, where the text has no header; one column without a name is no table."""
    rows, faults, truncated = _read(saved)
    if len(rows) > truncated and _is_header(rows[0]):
        columns = tuple(cell.strip() for cell in rows.pop(0))
    if not rows and not columns:
        return nvsmi.nothing(saved, faults)
    count = len(columns) or Counter(map(len, rows)).most_common(1)[0][0]
    if (count < 2 or len(rows) == truncated) and not columns:
        return nvsmi.nothing(saved, faults)
    known = _Cells()
    found = [_row(cells, count, columns, known) for cells in rows]
    if truncated and isinstance(found[-1], Value):
        found[-1] = _cut(found[-1].value)
    if not found and faults:
        return nvsmi.nothing(saved, faults)
    return Value(Table(Value(columns) if columns else Absent("NoHeader"), tuple(found), tuple(faults), truncated))


def _cut(row: Row) -> Fact[Row]:
    """A row whose last cell has no end."""
    cells = row.cells
    last = list(cells.values())[-1] if isinstance(cells, Mapping) else cells[-1]
    cut = Unknown("MayBeCut", last.value if isinstance(last, Value) else "")
    return Value(Row({**cells, list(cells)[-1]: cut} if isinstance(cells, Mapping) else (*cells[:-1], cut)))
