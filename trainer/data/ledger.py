"""What is remembered of every row, on disk: its content's key, its rank in the split, its place, its sketch and how it begins.

272 bytes a row, written once in the order of rows and read back in pieces, so that memory does not grow with the data.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from trainer.data.sketch import SLOTS

RECORD = np.dtype([("key", "<u8"), ("rank", "<u8"), ("place", "<u8"), ("sketch", "<u2", (SLOTS,))])
BEGINNING = 120  # bytes of a row's text that can be shown later
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AT_ONCE = 65_536  # records that are read at one time: 10 MB


class Ledger:
    """Records appended in batches. Use it as a context: its file has no name and is gone afterwards."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = str(folder or tempfile.gettempdir())
        self._records = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  (closed on leaving)
        self._texts = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  (closed on leaving)
        self._size = 0

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()
        self._texts.close()

    def __len__(self) -> int:
        return self._size

    def append(self, records: np.ndarray, texts: Sequence[bytes]) -> None:
        """Write the records of some rows and how their texts begin. Raises OSError, with the folder, where the disk is full."""
        try:
            _write(self._records, records.tobytes())
            _write(self._texts, b"".join([text[:BEGINNING].ljust(BEGINNING, b"\0") for text in texts]))
        except OSError as e:
            raise OSError(e.errno, f"{e.strerror} (notes on rows; --scratch names another folder)", self._folder) from e
        self._size += len(records)

    def pieces(self) -> Iterator[tuple[int, np.ndarray]]:
        """(index of the first, records) one after the other."""
        size = RECORD.itemsize
        for begin in range(0, self._size, _AT_ONCE):
            count = min(_AT_ONCE, self._size - begin)
            yield begin, np.frombuffer(_read(self._records, begin * size, count * size), RECORD)

    def pick(self, rows: Iterable[int]) -> np.ndarray:
        """The records of some rows, in the order asked for."""
        size, number = RECORD.itemsize, self._records.fileno()
        return np.frombuffer(b"".join([os.pread(number, size, int(row) * size) for row in rows]), RECORD)

    def beginning(self, row: int) -> str:
        """The first characters of a row's text, on one line."""
        raw = _read(self._texts, row * BEGINNING, BEGINNING).rstrip(b"\0")
        line = one_line(raw)
        return f"{line}…" if len(raw) == BEGINNING else line


def one_line(raw: bytes) -> str:
    """A text as it can be shown: on one line, without control characters; its last character may be cut and is left out then."""
    return _CONTROL.sub("\ufffd", " ".join(raw.decode(errors="ignore").split()))


def _write(file: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _read(file: IO[bytes], begin: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = os.pread(file.fileno(), size - len(found), begin + len(found))
        if not piece:
            raise OSError("the notes on rows are shorter than what was written")
        found = found + piece if found else piece
    return found
