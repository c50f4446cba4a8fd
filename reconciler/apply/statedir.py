"""The controller's own folder: one writer at a time, an identity, and the journal."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import LockHeld, StateDamaged


@dataclass(frozen=True, slots=True)
class StateDir:
    """Paths below the state directory."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def history(self) -> Path:
        return self.root / "state.git"

    @property
    def approvals(self) -> Path:
        return self.root / "approvals"

    @property
    def conditions(self) -> Path:
        return self.root / "conditions.json"

    @property
    def mirror(self) -> Path:
        """What was fetched of a repository behind a URL."""
        return self.root / "repository.git"

    def holder(self) -> str:
        """Who this controller is on the nodes: kept, so that it recognises its own leases after a restart."""
        file = self.root / "holder"
        if not file.exists():
            write_atomically(file, uuid.uuid4().hex.encode())
        return file.read_text().strip()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the only right to act from this folder. Raises LockHeld (StateDirLocked) with the other's pid."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise StateDamaged("StateDirUnusable", path=str(self.root), detail=e.strerror) from None
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(fd, 32, 0).decode(errors="replace").strip()
                raise LockHeld("StateDirLocked", path=str(self.root), pid=pid) from None
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(fd)


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old content or the new one, also after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    temporary.replace(path)
    fsync_directory(path.parent)


def fsync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
