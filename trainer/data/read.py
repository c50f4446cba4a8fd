"""Rows from files, folders and datasets, one at a time: `rows("train.jsonl")`.

    .jsonl          one object a line
    .json           one array of objects, or one object a line
    .gz, .zst       after either, packed
    .parquet        one row a row
    a folder        all of these in it, by name; hidden files are passed over
    datasets:NAME[:CONFIG[:SPLIT]]    what `datasets.load_dataset` knows by that name; SPLIT is train unless it is said

What is no row is given too, as Malformed with its line; what cannot be read at all ends it with SourceError.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from trainer.data.jsontext import Elements, NotJson, decode, lines
from trainer.data.row import Malformed, NotARow, Row, understand

__all__ = ["Malformed", "Row", "SourceError", "files", "rows"]

TEXTS, PACKED, TABLES = (".jsonl", ".json"), (".gz", ".zst"), (".parquet",)
ALLOWED = ".jsonl, .json (each also with .gz or .zst), .parquet, a folder of them, or datasets:NAME[:CONFIG[:SPLIT]]"
DATASETS = "datasets:"

_BUFFER = 1 << 17
# what an unpacker raises in the middle of a file that was cut off or altered; gzip's and pyarrow's own are OSErrors
_DAMAGED = (EOFError, zlib.error, OSError)

_EITHER = "; a .json file is one array of objects, or one object a line"

# (file, line or None, row of the file from 1, the object, or why there is none)
Found = tuple[str, int | None, int, Any]


class SourceError(Exception):
    """A source that cannot be read at all. `problems`: each what, where and what is allowed."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def rows(source: str | Path) -> Iterator[Row | Malformed]:
    """Every row of the source in its order, and every place that has none.

    Raises SourceError before the first row where the source is not there or is no source, and where a file stops being readable.
    """
    index = 0
    for file, line, number, found in _found(source):
        if isinstance(found, NotJson):
            yield Malformed(file, line, str(found), number)
            continue
        try:
            row = understand(found, index, file, line, number)
        except NotARow as e:
            yield Malformed(file, line, str(e), number)
            continue
        index += 1
        yield row


def _found(source: str | Path) -> Iterator[Found]:
    if str(source).startswith(DATASETS):
        from trainer.data import tables

        yield from tables.dataset(str(source).removeprefix(DATASETS))
        return
    for path in files(source):
        yield from _file(path)


def files(source: str | Path) -> list[Path]:
    """The files that a path stands for, sorted by their names. Raises SourceError."""
    path = Path(source)
    if path.is_dir():
        inside = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        found = sorted(file for file in inside if _form(file) and not _hidden(file.relative_to(path)))
        if not found:
            raise SourceError(f"{path}: no file in this folder can be read; allowed: {ALLOWED}")
        return found
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder{_nearest(path)}")
    if not _form(path):
        raise SourceError(f"{path}: {path.suffix or 'a file without a suffix'} is not read; allowed: {ALLOWED}")
    return [path]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _form(path: Path) -> str:
    """The suffix that says how the file is read, without that of its packing; empty for one that is not."""
    name = Path(path.stem) if path.suffix in PACKED else path
    return name.suffix if name.suffix in TEXTS or (path.suffix in TABLES) else ""


def _nearest(path: Path) -> str:
    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, 1)
    return f"; did you mean {path.parent / close[0]}?" if close else ""


def _file(path: Path) -> Iterator[Found]:
    try:
        if _form(path) in TABLES:
            from trainer.data import tables

            yield from tables.parquet(path)
            return
        with unpacked(path) as stream:
            yield from _texts(path, stream)
    except OSError as e:
        raise SourceError(f"{path}: {e.strerror or e}") from e


def _texts(path: Path, stream: IO[bytes]) -> Iterator[Found]:
    """A file of JSON: which of the two forms it is says its first character."""
    name, line, number = str(path), 0, 0
    either = _form(path) == ".json"
    found: Iterable[tuple[int, Any]] = Elements(stream) if either and _is_array(stream) else lines(stream)
    try:
        for line, value in found:
            if value == b"" or (isinstance(value, bytes) and not value.strip()):
                continue  # a blank line holds nothing that could be lost
            number += 1
            hint = _EITHER if either and number == 1 else ""
            yield name, line, number, _decoded(value, hint) if isinstance(value, bytes) else value
    except _DAMAGED as e:
        if path.suffix not in PACKED:
            raise
        yield name, line + 1, number + 1, NotJson(f"the packed file is damaged here or shortly after: {e}")


def _decoded(raw: bytes, hint: str) -> Any:
    try:
        return decode(raw)
    except NotJson as e:
        return NotJson(f"{e}{hint}")


def _is_array(stream: IO[bytes]) -> bool:
    """Whether an array begins there; a byte order mark is passed over."""
    assert isinstance(stream, io.BufferedReader)
    if stream.peek(3)[:3] == codecs.BOM_UTF8:
        stream.read(3)
    return stream.peek(1)[:4096].lstrip()[:1] == b"["


def unpacked(path: Path) -> IO[bytes]:
    """The file's own bytes, whatever it is packed with. Raises SourceError where the unpacker is not installed."""
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(path), _BUFFER)
    if path.suffix != ".zst":
        return path.open("rb", buffering=_BUFFER)
    try:
        import pyarrow
    except ImportError as e:
        raise SourceError(f"{path}: to read .zst needs the package pyarrow, which is not installed here") from e
    # not zstandard's reader: that one takes a file that was cut off for one that ended
    return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd", buffer_size=_BUFFER), _BUFFER)
