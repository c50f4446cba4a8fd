"""A node's disk: what the node program does through `os`, with power cuts that lose whatever was not fsynced.

The files are real. What is kept here is how to undo them: a name (created, renamed, removed) lasts once its directory was
fsynced, a file's content once the file was. A power cut takes back a suffix of the names that do not last, in order, and leaves
files whose content does not last empty.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulated.turns import Choices

# called before every operation that writes, with its name and path; raises what ends the writer there
Before = Callable[[str, str], None]


@dataclass
class Disk:
    """Below `root`; `volatile` (as /run) is gone after a power cut."""

    root: str
    volatile: str
    names: list[tuple[str, Callable[[], None]]] = field(default_factory=list)  # (directory, how to take it back), oldest first
    contents: set[str] = field(default_factory=set)  # paths whose content does not last yet
    writes: int = 0

    def holds(self, path: str) -> bool:
        return path.startswith(self.root) and not path.startswith(self.volatile)

    def remember(self, path: str) -> None:
        """`path` is about to be created, replaced or removed: how that is taken back."""
        before = Path(path).read_bytes() if os.path.isfile(path) else None
        mode = os.stat(path).st_mode & 0o7777 if before is not None else 0

        def undo() -> None:
            if before is None:
                shutil.rmtree(path) if os.path.isdir(path) else Path(path).unlink(missing_ok=True)
            elif os.path.isdir(os.path.dirname(path)):
                Path(path).write_bytes(before)
                os.chmod(path, mode)

        self.names.append((os.path.dirname(path), undo))

    def synced(self, path: str) -> None:
        self.contents.discard(path)
        self.names = [(directory, undo) for directory, undo in self.names if directory != path]

    def lose_power(self, choices: Choices) -> None:
        kept = choices.below(len(self.names) + 1)
        for _, undo in reversed(self.names[kept:]):
            undo()
        for path in self.contents:
            if os.path.isfile(path) and not choices.below(2):
                os.truncate(path, 0)
        self.shut_down()

    def shut_down(self) -> None:
        """All that was written lasts; what is volatile is gone."""
        shutil.rmtree(self.volatile)
        Path(self.volatile).mkdir()
        self.names, self.contents = [], set()


class SimulatedOs:
    """Stands in for the module `os` in the node program. `disk` and `before` say which node is at work now, and what may end it."""

    def __init__(self, disk: Callable[[], Disk], before: Before) -> None:
        self._disk, self._before = disk, before
        self._paths: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _writes(self, what: str, path: str) -> Disk | None:
        self._before(what, path)
        disk = self._disk()
        if not disk.holds(path):
            return None
        disk.writes += 1
        return disk

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            exists = os.path.lexists(path)
            disk = self._writes("open", path)
            if disk and not exists:
                disk.remember(path)
            if disk and not path.endswith("/lock"):
                disk.contents.add(path)
        fd = os.open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def fsync(self, fd: int) -> None:
        self._before("fsync", self._paths[fd])
        self._disk().synced(self._paths[fd])

    def rename(self, source: str, target: str) -> None:
        if disk := self._writes("rename", target):
            disk.remember(target)
            if source in disk.contents:
                disk.contents.remove(source)
                disk.contents.add(target)
            else:
                disk.contents.discard(target)
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        if disk := self._writes("unlink", path):
            disk.remember(path)
            disk.contents.discard(path)
        os.unlink(path)

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        if not os.path.isdir(path) and (disk := self._writes("mkdir", path)):
            disk.remember(path)
        os.mkdir(path, mode)

    def makedirs(self, path: str, mode: int = 0o777, exist_ok: bool = False) -> None:
        """As os.makedirs, directory by directory."""
        if os.path.isdir(path):
            if exist_ok:
                return
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if not os.path.isdir(os.path.dirname(path)):
            self.makedirs(os.path.dirname(path), 0o777, exist_ok)
        self.mkdir(path, mode)
