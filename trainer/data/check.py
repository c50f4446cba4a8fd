"""Look at all of the training data once: `check(asked) -> Report`. Reads it as a stream; what grows with it is on disk.

One pass reads, counts, encodes and writes a record a row into the ledger; then equal and nearly equal rows are found from the
records, and who is on which side of the split.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data import digest, judge, split
from trainer.data.groups import groups
from trainer.data.ledger import RECORD, Ledger
from trainer.data.read import rows
from trainer.data.report import Asked, Example, Report
from trainer.data.row import Malformed, Row, place
from trainer.data.sketch import sketches
from trainer.data.tally import Tally
from trainer.data.tokens import Counter

_BATCH_ROWS, _BATCH_BYTES = 512, 64 * 1024  # rows that are worked on together
_GARBAGE = 100_000  # objects; rows make no cycles, and Python would look for some after every 90 of them
_LINE_BITS = 44  # of a place; above them the number of the file, below a bit that says whether it is a line or a row
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What changes no figure: how many places of each finding are kept, where notes on rows are put, who is told of progress."""

    show: int = 10
    scratch: Path | None = None
    progress: Progress = lambda rows: None


def check(asked: Asked, tokenizer: Any = None, options: Options | None = None) -> Report:
    """The report on one source. Raises SourceError where it cannot be read, OSError where the scratch folder is full."""
    options = options or Options()
    with _seldom_collected(), Ledger(options.scratch) as ledger:
        over = Pass(asked, tokenizer, options, ledger)
        over.read(asked.source)
        training = len(ledger)
        if asked.validation:
            over.read(asked.validation)
        over.finish()
        validation = _validation(asked, ledger, training)
        found = groups(ledger, 4 * options.show)  # some of the pairs may lie on two sides, and are told elsewhere
        return judge.report(over, found, validation)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Python looks for cycles less often meanwhile; as often as before afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(_GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Pass:
    """The one pass over all rows."""

    def __init__(self, asked: Asked, tokenizer: Any, options: Options, ledger: Ledger) -> None:
        self.asked, self.options, self.ledger = asked, options, ledger
        self.tally, self.whole = Tally(options.show), digest.DataDigest()
        self.files: dict[str, int] = {}
        self.lacks_template = tokenizer is not None and not tokenizer.chat_template
        self._counter = Counter(tokenizer) if tokenizer is not None and not self.lacks_template else None
        self._size = 0
        self._batch: list[tuple[Row, str, bytes]] = []

    def read(self, source: str) -> None:
        """Count every row of a source. A second source goes on counting rows where the first ended."""
        for row in rows(source):
            if isinstance(row, Malformed):
                self.tally.malformed(row)
                continue
            text = digest.said(row)
            self._batch.append((row, text, raw := text.encode()))
            self._size += len(raw)
            if self._size >= _BATCH_BYTES or len(self._batch) >= _BATCH_ROWS:
                self._work()
        self._work()

    def _work(self) -> None:
        records = np.zeros(len(self._batch), RECORD)
        raws = [raw for _, _, raw in self._batch]
        owns = [digest.of(digest.content(row, raw)) for row, _, raw in self._batch]
        self.tally.batch(self._batch)
        if self._counter:
            for at, (row, text, _) in enumerate(self._batch, start=len(self.ledger)):
                self._counter.add(at, row, len(text))
        self.whole.add(joined := b"".join(owns))
        halves = np.frombuffer(joined, "<u8").reshape(-1, 2)
        records["key"] = np.maximum(halves[:, 0], 1)  # 0 is no key
        records["rank"] = _ranks(halves[:, 1], self.asked.seed)
        records["place"] = [self._place(row) for row, _, _ in self._batch]
        records["sketch"] = sketches(raws)
        self.ledger.append(records, raws)
        self._batch, self._size = [], 0
        if self._counter:
            self._lengths(self._counter.ready())
        self.options.progress(self.tally.rows)

    def finish(self) -> None:
        if self._counter:
            self._lengths(self._counter.finish())

    def _lengths(self, counts: Iterator[tuple[int, int | str]]) -> None:
        for row, found in counts:
            if isinstance(found, str):
                self.tally.note("TemplateRefuses", Example(self.where(row), found, self.ledger.beginning(row)))
            else:
                self.tally.length(row, found, self.asked.max_length)

    def _place(self, row: Row) -> int:
        file = self.files.setdefault(row.file, len(self.files))
        at = row.number if row.line is None else row.line
        return file << _LINE_BITS | at << 1 | (row.line is not None)

    def where(self, row: int) -> str:
        """FILE:LINE of a row, from its record."""
        found = int(self.ledger.pick([row])["place"][0])
        file = list(self.files)[found >> _LINE_BITS]
        at = (found & (1 << _LINE_BITS) - 1) >> 1
        return place(file, at if found & 1 else None, at)

    def alike(self, row: int, first: int, how: str) -> Example:
        """One row that is like an earlier one."""
        return Example(self.where(row), f"{how} {self.where(first)}", self.ledger.beginning(row), self.ledger.beginning(first))


def _ranks(halves: np.ndarray, seed: int) -> np.ndarray:
    """`split.rank` of many digests, of which only the second half counts."""
    found, shift = halves ^ np.uint64(split.key(seed)), np.uint64(split.SHIFT)
    for factor in split.FACTORS:
        found = (found ^ found >> shift) * np.uint64(factor)
    return found ^ found >> shift


def _validation(asked: Asked, ledger: Ledger, training: int) -> np.ndarray:
    """For each row: is it validation?"""
    if asked.validation or not asked.share:
        return np.arange(len(ledger)) >= training
    ranks = array("Q")
    for _, records in ledger.pieces():
        ranks.frombytes(records["rank"].tobytes())
    border = split.border(ranks, asked.share)
    return np.frombuffer(ranks, np.uint64) < border if len(ranks) else np.zeros(0, bool)
