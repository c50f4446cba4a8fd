"""How full filesystems are, in bytes or in inodes: `df`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_SIZE = re.compile(r"(-?[0-9]{1,20}(?:[.,][0-9]{1,3})?)([KkMGTPEZYR]?)(?:i?B)?")
_POWER = {"": 0, "K": 1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "Z": 7, "Y": 8, "R": 9}
_PERCENT = re.compile(r"([0-9]{1,4})%")
_BLOCKS = re.compile(r"([0-9]{1,6})([KMGkB]?)B?-")  # 1K-blocks, 1024-blocks, 1M-blocks, 1K-Blöcke
_COUNT = r" +(-|-?[0-9]{1,20}(?:[.,][0-9]{1,3})?[KkMGTPEZYR]?(?:i?B)?)"
_COUNTS = _COUNT * 3 + r" +([0-9]{1,4}%|-) +(/\S*)"
_PLAIN, _TYPED = re.compile(r"(\S+)()" + _COUNTS), re.compile(r"(\S+) +([A-Za-z]\S*)" + _COUNTS)
_TYPE = {"Type", "Typ", "Tipo", "类型", "類型", "タイプ"}
_NOT_APPLICABLE, _NOT_SHOWN = Absent("NotApplicable"), Unknown("NotShown")
# the titles of `df --output` and of BSD, by what they hold
_TITLES = {
    **{"Filesystem": "source", "Type": "type", "File": "file", "Mounted": "target"},
    **{
        "Inodes": "itotal",
        "IUsed": "iused",
        "iused": "iused",
        "IFree": "iavail",
        "ifree": "iavail",
        "IUse%": "ipcent",
        "%iused": "ipcent",
    },
    **{"Size": "size", "Used": "used", "Avail": "avail", "Available": "avail", "Use%": "pcent", "Capacity": "pcent"},
}
_COMMON = ("size used avail pcent target", "itotal iused iavail ipcent target")
_SHORT_COUNT = re.compile(r" [0-9]{1,4}(?:[.,][0-9])?[KMGTPE] ")
_COMPLAINT = re.compile(r"^(?:\S*/)?df: ")


class Space(NamedTuple):
    """Three cells of a row, in the unit that the row's field says: Absent(NotApplicable) for `-`."""

    total: Fact[int]
    used: Fact[int]
    available: Fact[int]


class Filesystem(NamedTuple):
    """One row. `bytes` or `inodes`, as the table counts. `used_percent` is df's own, which leaves out the root's reserve."""

    source: str
    type: Fact[str]
    bytes: Fact[Space]
    inodes: Fact[Space]
    used_percent: Fact[int]
    mounted_on: str


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` in order, what could not be read in its place. `rounded`: df -h or -hi, powers of 1024.

    `full`: mount points of which 100 % is used, Unknown where a row or a percentage could not be read.
    `complaints`: what df said about file systems that it could not ask; they have no row.
    """

    rows: tuple[Fact[Filesystem], ...]
    rounded: bool
    full: Fact[tuple[str, ...]]
    complaints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    """What the header says: `unit` in bytes a cell counts, 0 for inodes."""

    unit: int
    typed: bool
    rounded: bool


def _header(line: str) -> _Header:
    """In any language: a block size says blocks, `Inodes` says inodes, anything else is a size for people."""
    words = line.split()
    typed = len(words) > 1 and words[1] in _TYPE
    counted = words[1 + typed] if len(words) > 1 + typed else ""
    if "node" in counted.lower() or "inode" in line.lower():
        return _Header(0, typed, "%" not in line)
    found = _BLOCKS.match(counted)
    if not found:
        return _Header(1, typed, True)
    return _Header(int(found[1]) * 1024 ** _POWER.get(found[2], 0), typed, False)


@lru_cache(maxsize=65536)
def _cell(cell: str, unit: int) -> Fact[int]:
    if cell == "-":
        return _NOT_APPLICABLE
    if unit and cell.isdecimal() and len(cell) <= 20:
        return Value(int(cell) * unit)
    found = _SIZE.fullmatch(cell)
    if not found:
        return scalars.strange(cell)
    # df -BM: a cell that has a unit of its own is not in that of the header
    amount, scale = found[1].replace(",", "."), 1024 ** _POWER[found[2]] if found[2] else unit or 1
    return Value(int(amount) * scale if "." not in amount else round(float(amount) * scale))


@lru_cache(maxsize=1024)
def _percent(cell: str) -> Fact[int]:
    if cell == "-":
        return _NOT_APPLICABLE
    found = _PERCENT.fullmatch(cell)
    return Value(int(found[1])) if found else scalars.strange(cell)


def _is_count(word: str) -> bool:
    return word == "-" or (word.isdecimal() and len(word) <= 20) or _SIZE.fullmatch(word) is not None


def _is_place(words: list[str], at: int) -> bool:
    return words[at][0] == "/" or (words[0] == "total" and words[at] == "-" and at == len(words) - 1)


def _share(words: list[str]) -> int:
    """Where the percentage of a row stands: behind three counts and before a mount point; 0 where there is none."""
    for i in range(4, len(words) - 1):
        if (words[i] == "-" or words[i].endswith("%")) and _is_place(words, i + 1) and all(map(_is_count, words[i - 3 : i])):
            return i
    return 0


def _plain_row(found: re.Match[str], header: _Header) -> Fact[Filesystem]:
    """The common row: one word for the source, and one for its type."""
    source, kind, total, used, available, share, mounted_on = found.groups()
    unit = header.unit
    space = Value(Space(_cell(total, unit), _cell(used, unit), _cell(available, unit)))
    in_bytes, in_inodes = (space, _NOT_SHOWN) if unit else (_NOT_SHOWN, space)
    return Value(Filesystem(source, Value(kind) if kind else _NOT_SHOWN, in_bytes, in_inodes, _percent(share), mounted_on))


def _row(line: str, header: _Header) -> Fact[Filesystem]:
    """From the percentage to the left: sources and mount points may hold blanks."""
    if plain := (_TYPED if header.typed else _PLAIN).fullmatch(line):
        return _plain_row(plain, header)
    words = line[:10_000].split()
    at = _share(words)
    typed = header.typed and at > 4
    if not at:
        return Unknown("UnreadableRow", raw.clean(line[:400], 120))
    space = Space(*(_cell(word, header.unit) for word in words[at - 3 : at]))
    return Value(
        Filesystem(
            source=" ".join(words[: at - 3 - typed]),
            type=Value(words[at - 4]) if typed else _NOT_SHOWN,
            bytes=Value(space) if header.unit else _NOT_SHOWN,
            inodes=_NOT_SHOWN if header.unit else Value(space),
            used_percent=_percent(words[at]),
            mounted_on=line.split(None, at + 1)[-1].rstrip(),
        )
    )


def _titles(line: str) -> tuple[str, ...] | None:
    """What the columns hold, where they are known and are not those of plain df, which needs no titles."""
    words = line.replace("Mounted on", "Mounted").split()
    found = tuple("size" if _BLOCKS.match(word) else _TITLES.get(word, "") for word in words)
    plain = " ".join(name for name in found if name not in ("source", "type")) in _COMMON and found[0] == "source"
    known = all(found) and len(set(found)) == len(found) and {"source", "target"} <= set(found)
    return found if known and not plain else None


def _size(said: dict[str, str], name: str, unit: int) -> Fact[int]:
    """A number without a letter counts blocks, whose size only the title of the totals says."""
    if name not in said:
        return _NOT_SHOWN
    return _cell(said[name], unit) if "size" in said or not said[name].isdecimal() else scalars.strange(said[name], "NoUnit")


def _chosen(line: str, titles: tuple[str, ...], header: _Header) -> Fact[Filesystem]:
    """A row of `df --output=...`, column by column: each cell has to be what its title says."""
    words = line.split()
    said = dict(zip(titles, words, strict=False))
    counts = {name: said[name] for name in ("size", "used", "avail", "itotal", "iused", "iavail") if name in said}
    shares = [said[name] for name in ("pcent", "ipcent") if name in said]
    sound = all(map(_is_count, counts.values())) and all(share == "-" or _PERCENT.fullmatch(share) for share in shares)
    if len(words) != len(titles) or not sound or said["target"][:1] != "/":
        return Unknown("UnreadableRow", raw.clean(line[:400], 120))
    sizes = Space(*(_size(said, name, header.unit) for name in ("size", "used", "avail")))
    inodes = Space(*(_cell(said[name], 0) if name in said else _NOT_SHOWN for name in ("itotal", "iused", "iavail")))
    share = said.get("pcent") or (said.get("ipcent") if not {"size", "used", "avail"} & set(said) else None)
    return Value(
        Filesystem(
            source=said["source"],
            type=Value(said["type"]) if "type" in said else _NOT_SHOWN,
            bytes=Value(sizes) if {"size", "used", "avail"} & set(said) else _NOT_SHOWN,
            inodes=Value(inodes) if {"itotal", "iused", "iavail"} & set(said) else _NOT_SHOWN,
            used_percent=_percent(share) if share else _NOT_SHOWN,
            mounted_on=said["target"],
        )
    )


def _chosen_header(line: str) -> _Header:
    """Only the column of totals says what the others count."""
    blocks = next((found for word in line.split() if (found := _BLOCKS.match(word))), None)
    unit = int(blocks[1]) * 1024 ** _POWER.get(blocks[2], 0) if blocks else 1
    return _Header(unit, True, blocks is None and " Size " in line)


def _unwrapped(lines: list[str]) -> list[str]:
    """df breaks a line behind a long source: its numbers follow, indented; other programs put blank lines between."""
    whole: list[str] = []
    for line in lines:
        if whole and line[:1] == " " and " " not in whole[-1] and "/" in line:
            whole[-1] += " " + line.strip()
        elif line.strip():
            whole.append(line.rstrip())
    return whole


def _full(rows: tuple[Fact[Filesystem], ...]) -> Fact[tuple[str, ...]]:
    found = []
    for row in rows:
        if not isinstance(row, Value) or isinstance(row.value.used_percent, Unknown):
            return Unknown("UnreadRows")
        share = row.value.used_percent
        if isinstance(share, Value) and share.value >= 100 and row.value.mounted_on != "-":  # no total
            found.append(row.value.mounted_on)
    return Value(tuple(found))


def parse(said: str) -> Fact[Table]:
    """`df` with any of -a -h -i -k -l -P -T, --output, and BSD's. Unknown(NoTable) where no header stands before the rows."""
    whole, cut = scalars.ended(text.clean(said))
    lines = _unwrapped(whole)
    complaints: list[str] = []
    table: list[str] = []
    for line in lines:
        if "df: " in line and _COMPLAINT.match(line[:200]):
            complaints.append(raw.clean(line[:1000]))
        else:
            table.append(line)
    if absent := scalars.no_command(table[:1], "df"):
        return absent
    if not table or _share(table[0][:10_000].split()):
        return Unknown("NoTable", raw.clean(table[0][:400], 120) if table else "")
    titles = _titles(table[0][:400])
    header = _chosen_header(table[0][:400]) if titles else _header(table[0][:400])
    rows = (*(_chosen(line, titles, header) if titles else _row(line, header) for line in table[1:]), *cut)
    short = (titles or not header.unit) and any(_SHORT_COUNT.search(line[:10_000]) for line in table[1:])
    if not any(isinstance(row, Value) for row in rows):
        return Unknown("NoRows", complaints[0] if complaints else raw.clean(table[0][:400], 120))
    return Value(Table(rows=rows, rounded=header.rounded or bool(short), full=_full(rows), complaints=tuple(complaints)))
