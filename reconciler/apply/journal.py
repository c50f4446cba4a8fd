"""What the controller meant to do and what came of it: append-only, on disk before anything follows from it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.apply.statedir import fsync_directory
from reconciler.errors import StateDamaged

VERSION = 1
HEADER = {"format": "reconcile-journal", "version": VERSION}
CRASH = "RECONCILE_CRASH_AFTER"  # the controller dies after this many records of its own: the crash harness counts them out

Record = Mapping[str, Any]


def read(path: Path) -> list[Record]:
    """All records in order, for looking only. A last line that a crash cut short never counted and is passed over.

    Raises StateDamaged: JournalDamaged (line), NewerState (version), JournalUnreadable.
    """
    records, _ = _read(path)
    return records


def _read(path: Path) -> tuple[list[Record], int]:
    """Records, and how many bytes of the file they fill."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as e:
        raise StateDamaged("JournalUnreadable", path=str(path), detail=e.strerror) from None
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].splitlines()
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or (number > 1 and record.get("seq") != number - 1):
            raise StateDamaged("JournalDamaged", path=str(path), line=number)
        if number == 1:
            _check_header(record, path)
        else:
            records.append(record)
    return records, whole


def _check_header(record: Record, path: Path) -> None:
    version = record.get("version")
    if record.get("format") != HEADER["format"] or not isinstance(version, int):
        raise StateDamaged("JournalDamaged", path=str(path), line=1)
    if version > VERSION:
        raise StateDamaged("NewerState", path=str(path), version=version, supported=VERSION)


class Journal:
    """The one writer of a journal; to be opened under the state directory's lock. `append` may be called by several threads."""

    def __init__(self, path: Path) -> None:
        self.records, whole = _read(path)
        self._lock = threading.Lock()
        self._path, self._written, self._end, self._broken = path, 0, whole, False
        self._crash_after = int(os.environ.get(CRASH, "0"))
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise StateDamaged("JournalUnwritable", path=str(path), detail=e.strerror) from None
        os.ftruncate(self._fd, whole)
        os.lseek(self._fd, 0, os.SEEK_END)
        if whole == 0:
            self._write(HEADER)
            fsync_directory(path.parent)

    def append(self, kind: str, **fields: Any) -> Record:
        """Write one record and wait until it is on disk. Raises StateDamaged (JournalUnwritable): then and at every later call."""
        with self._lock:
            record = {"seq": len(self.records) + 1, "time": round(time.time(), 3), "type": kind, **fields}
            self._write(record)
            self.records.append(record)
            self._written += 1
            if self._written == self._crash_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return record

    def _write(self, record: Record) -> None:
        data = json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        left = b"" if self._broken else data
        try:
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as e:
            # half a line with more behind it would be damage: after this, nothing is behind it
            self._broken = True
            os.ftruncate(self._fd, self._end)
            raise StateDamaged("JournalUnwritable", path=str(self._path), detail=e.strerror) from None
        if self._broken:
            raise StateDamaged("JournalUnwritable", path=str(self._path), detail="an earlier record could not be written")
        self._end += len(data)

    def close(self) -> None:
        os.close(self._fd)
