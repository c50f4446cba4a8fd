"""Rows of Parquet files and of datasets by name, through Arrow: some hundred at a time. Needs pyarrow, and datasets for names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.data.jsontext import NotJson
from trainer.data.read import DATASETS, Found, SourceError

_AT_ONCE = 256  # rows that are Python objects at one time


def parquet(path: Path) -> Iterator[Found]:
    """Every row of one file. Raises SourceError where it is none, or is damaged."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as e:
        raise SourceError(f"{path}: to read Parquet needs the package pyarrow, which is not installed here") from e
    try:
        with ParquetFile(path, pre_buffer=False) as file:
            yield from _rows(str(path), file.iter_batches(batch_size=_AT_ONCE))
    except pyarrow.ArrowException as e:
        raise SourceError(f"{path}: not Parquet, or damaged: {_first(e)}") from e


def dataset(named: str) -> Iterator[Found]:
    """Every row of NAME[:CONFIG[:SPLIT]]. Raises SourceError where there is none by that name, configuration or split."""
    source = DATASETS + named
    parts = named.split(":")
    if len(parts) > 3 or not parts[0]:
        raise SourceError(f"{source}: allowed is {DATASETS}NAME[:CONFIG[:SPLIT]]")
    name, config, split = (*parts, "", "")[:3]
    try:
        from datasets import load_dataset
    except ImportError as e:
        raise SourceError(f"{source}: needs the package datasets, which is not installed here") from e
    try:
        found = load_dataset(name, config or None)
    except Exception as e:  # the library has a dozen kinds of error for a name it does not find
        raise SourceError(f"{source}: {type(e).__name__}: {_first(e)}") from e
    wanted = split or "train"
    if wanted not in found:
        close = difflib.get_close_matches(wanted, found, 1)
        advice = f"; did you mean {close[0]!r}?" if close else ""
        raise SourceError(f"{source}: no split {wanted!r}; there are: {', '.join(found)}{advice}")
    tables = found[wanted].with_format("arrow").iter(batch_size=_AT_ONCE)
    yield from _rows(source, (batch for table in tables for batch in table.to_batches()))


def _rows(name: str, batches: Iterator[Any]) -> Iterator[Found]:
    number = 0
    for batch in batches:
        for found in _objects(batch):
            number += 1
            yield name, None, number, found


def _objects(batch: Any) -> Iterator[Any]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:  # Arrow does not look whether a text is UTF-8: find out which it is
        for at in range(batch.num_rows):
            yield _object(batch.slice(at, 1))


def _object(batch: Any) -> Any:
    try:
        return batch.to_pylist()[0]
    except UnicodeDecodeError as e:
        return NotJson(f"not UTF-8: byte 0x{e.object[e.start]:02x}")


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0]
