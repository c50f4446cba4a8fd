"""Results of nccl-tests and rccl-tests: all_reduce_perf and the like, old and new columns, with or without `#`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_VERSION = re.compile(r"\b[NR]CCL version *:? *([0-9][0-9A-Za-z.+_-]*)")
_LIBRARY = re.compile(r"nccl-library=([0-9]{5})\b")  # NCCL_VERSION_CODE: 22807 is 2.28.7
_TEST = re.compile(r"Collective test starting: *(\S+)")
_OPTION = re.compile(r"\b(nThread|nGpus|minBytes|maxBytes|warmup iters|agg iters|iters|validation|graph):? ([0-9]+)")
_RANK = re.compile(r"Rank +([0-9]{1,7}) .{0,60}?Pid +[0-9]+ on +(\S+) device +([0-9]{1,4}) \[([^\]]{1,20})\] *(.*)")
_SUMMARY = re.compile(r"^[#\s]*(Avg bus bandwidth|Out of bounds values) *: *(.*?)\s*$")
_OUT_OF_BOUNDS = re.compile(r"([0-9]{1,20}) +(OK|FAILED)")
_FAILURE = re.compile(r"Test (?:NCCL|CUDA|failure|failed|timeout)|unhandled (?:cuda|system) error|C(?:UDA|uda) failure")


class Timing(NamedTuple):
    """One half of a row. GB/s are powers of ten. `wrong` counts wrong values; old versions measure an `error` instead.

    Absent(NotValidated): the run did not check. 0.0 is what nccl-tests rounds to.
    """

    time_us: Fact[float]
    algbw_gb_s: Fact[float]
    busbw_gb_s: Fact[float]
    wrong: Fact[int]
    error: Fact[float]


@dataclass(frozen=True, slots=True)
class Row:
    """One message size in bytes; `root` is -1 where the collective has none."""

    size_bytes: int
    count: Fact[int]
    type: Fact[str]
    redop: Fact[str]
    root: Fact[int]
    out_of_place: Timing
    in_place: Timing


@dataclass(frozen=True, slots=True)
class Rank:
    rank: int
    host: str
    device: int
    bus_id: str
    gpu: str


@dataclass(frozen=True, slots=True)
class NcclTest:
    """A run. Its summary is Unknown(Missing) where the text ends before it or in it, Unknown(Several) where several runs disagree.

    `out_of_bounds` as it is printed (`0 OK`), `ok` what it says. `best_busbw_gb_s`: of the readable rows, out of place.
    """

    test: Fact[str]
    nccl: Fact[str]
    validation: Fact[int]
    options: dict[str, int]
    ranks: tuple[Rank, ...]
    rows: tuple[Fact[Row], ...]
    avg_busbw_gb_s: Fact[float]
    best_busbw_gb_s: Fact[float]
    out_of_bounds: Fact[str]
    wrong_values: Fact[int]
    ok: Fact[bool]
    failures: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    columns: _Columns | None = None
    rows: list[Fact[Row]] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    options: dict[str, int] = field(default_factory=dict)
    said: dict[str, dict[str, None]] = field(default_factory=dict)

    def say(self, key: str, value: str) -> None:
        self.said.setdefault(key, {})[value] = None

    def one(self, key: str) -> Fact[str]:
        """What all runs in the text agree on."""
        found = self.said.get(key, {})
        if len(found) > 1:
            return Unknown("Several", raw.clean(", ".join(list(found)[:8])))
        return Value(next(iter(found))) if found else Unknown("Missing", key)


_NO_COLUMN, _NOT_VALIDATED, _NOT_MEASURED = Absent("NoSuchColumn"), Absent("NotValidated"), Absent("NotMeasured")


@lru_cache(maxsize=4096)
def _decimal(cell: str) -> Fact[float]:
    if len(cell) < 20 and cell.isascii() and cell.replace(".", "", 1).isdigit():  # the common cell, without its expression
        return Value(float(cell))
    return scalars.real(cell)


_integer = lru_cache(maxsize=4096)(scalars.whole)  # mostly 0 wrong values and root -1


def _real(cell: str, none: Absent) -> Fact[float]:
    return none if cell == "N/A" else _decimal(cell)


def _whole(cell: str, none: Absent) -> Fact[int]:
    return none if cell == "N/A" else _integer(cell)


@lru_cache(maxsize=256)
def _word(cell: str) -> Fact[str]:
    return Value(cell) if cell else Unknown("Missing")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where a table has what, 0 for nowhere: the size is first. Of time, algbw, busbw, wrong and error the first place of two."""

    count: int
    places: dict[str, int]
    second: int

    @classmethod
    def named(cls, names: list[str]) -> _Columns:
        second = len(names) - names[::-1].index("time") - 1
        return cls(len(names), {name: at for at, name in enumerate(names[:second])}, second - names.index("time"))

    def timing(self, words: list[str], shift: int) -> Timing:
        """Each half has the same columns in the same order: nccl-tests prints them by one loop."""
        places = self.places
        time, algbw, busbw = words[places["time"] + shift], words[places["algbw"] + shift], words[places["busbw"] + shift]
        return Timing(
            _real(time, _NOT_MEASURED),
            _real(algbw, _NOT_MEASURED),
            _real(busbw, _NOT_MEASURED),
            _whole(words[places["wrong"] + shift], _NOT_VALIDATED) if "wrong" in places else _NO_COLUMN,
            _real(words[places["error"] + shift], _NOT_VALIDATED) if "error" in places else _NO_COLUMN,
        )


def _row(columns: _Columns, words: list[str]) -> Fact[Row]:
    """A row by its header's columns, of which time, algbw, busbw and wrong come twice."""
    size = scalars.whole(words[0])
    if len(words) != columns.count or not isinstance(size, Value):
        return Unknown("UnreadableRow", raw.clean(" ".join(words)[:400], 120))
    places = columns.places
    return Value(
        Row(
            size.value,
            _whole(words[places["count"]], _NOT_MEASURED),
            _word(words[places["type"]]) if "type" in places else _NO_COLUMN,
            _word(words[places["redop"]]) if "redop" in places else _NO_COLUMN,
            _whole(words[places["root"]], _NO_COLUMN) if "root" in places else _NO_COLUMN,
            columns.timing(words, 0),
            columns.timing(words, columns.second),
        )
    )


def _header(line: str) -> _Columns | None:
    """The columns that a line names; None where it is no header of a table with two equal halves."""
    words = line.replace("#", " ").split()
    if words[:2] != ["size", "count"] or words.count("time") != 2 or not {"algbw", "busbw"} <= set(words):
        return None
    columns, first = _Columns.named(words), words.index("time")
    second = first + columns.second
    return columns if words[first:second] == words[second : second + columns.second] else None


def _comment(found: _Found, line: str) -> None:
    """A line that is no row."""
    if " : " in line and (summary := _SUMMARY.match(line[:400])):
        found.say(summary[1], summary[2])
    elif "busbw" in line and (columns := _header(line[:1000])):
        found.columns = columns
    elif "Rank " in line and (rank := _RANK.search(line[:1000])):
        found.ranks.append(Rank(int(rank[1]), rank[2], int(rank[3]), rank[4], rank[5].strip()))
    elif _FAILURE.search(line[:1000]):
        found.failures.append(raw.clean(line[:1000]))
    elif "CCL version" in line and (version := _VERSION.search(line[:1000])):
        found.say("version", version[1])
    elif "nccl-library=" in line and (library := _LIBRARY.search(line[:1000])):
        code = int(library[1])
        found.say("library", f"{code // 10000}.{code // 100 % 100}.{code % 100}")
    elif "Collective test" in line and (test := _TEST.search(line[:1000])):
        found.say("test", test[1])
    elif "nThread" in line:
        found.options = {name: int(value[:18]) for name, value in _OPTION.findall(line[:1000])}
        found.say("validation", str(found.options.get("validation", "")))


def _take(found: _Found, line: str) -> None:
    columns = found.columns
    words = line.split(None, 40) if columns else []
    if columns and words and words[0].isascii() and words[0].isdecimal() and len(words) > columns.count // 2:
        found.rows.append(_row(columns, words))
    else:
        _comment(found, line)


def _best(rows: list[Fact[Row]]) -> Fact[float]:
    speeds = [row.value.out_of_place.busbw_gb_s for row in rows if isinstance(row, Value)]
    known = [speed.value for speed in speeds if isinstance(speed, Value)]
    return Value(max(known)) if known else Unknown("NoRows")


def _summed(found: _Found) -> NcclTest:
    average, bounds, validation = found.one("Avg bus bandwidth"), found.one("Out of bounds values"), found.one("validation")
    checked = _OUT_OF_BOUNDS.fullmatch(bounds.value) if isinstance(bounds, Value) else None
    unread = Unknown("Unreadable", raw.clean(bounds.value, 120)) if isinstance(bounds, Value) else bounds
    return NcclTest(
        test=found.one("test"),
        nccl=found.one("version" if "version" in found.said else "library"),
        validation=scalars.whole(validation.value) if isinstance(validation, Value) else validation,
        options=found.options,
        ranks=tuple(found.ranks),
        rows=tuple(found.rows),
        avg_busbw_gb_s=scalars.real(average.value) if isinstance(average, Value) else average,
        best_busbw_gb_s=_best(found.rows),
        out_of_bounds=bounds,
        wrong_values=Value(int(checked[1])) if checked else unread,
        ok=Value(checked[2] == "OK") if checked else unread,
        failures=tuple(found.failures),
    )


def parse(said: str) -> Fact[NcclTest]:
    """Output of one collective's test, between log lines or not; Unknown(NoTest) where there is neither table nor summary."""
    lines, cut = scalars.ended(text.clean(said))
    found = _Found()
    for line in lines:
        _take(found, line)
    if not (found.columns or found.failures or "Avg bus bandwidth" in found.said):
        return cut[0] if cut else Unknown("NoTest", raw.clean(lines[0][:400], 120) if lines else "")
    return Value(_summed(found))
