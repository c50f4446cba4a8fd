"""A folder of files to read manifests from: on disk, or (in `git`) at a commit. Only these two open files."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not read. `code`: `no-such-file`, `not-regular`, `file-too-large`, `denied` or `io`.

    `detail` is what the system said, for people only; `size` in bytes where it is known.
    """

    code: str
    detail: str = ""
    size: int = 0


class Tree(Protocol):
    """Files by their path below the root, with '/' between the parts."""

    def files(self) -> tuple[str, ...] | Failure:
        """All files, sorted. Names that begin with '.' and what is below them are left out."""

    def read(self, path: str, limit: int) -> bytes | Failure:
        """The bytes of a regular file of at most `limit` bytes. A symbolic link is not followed."""


@dataclass(frozen=True, slots=True)
class DirectoryTree:
    """A folder on disk. `only`: the one file that is a manifest, where a file was named instead of a folder."""

    root: Path
    only: str | None = None

    def files(self) -> tuple[str, ...] | Failure:
        """See Tree. A folder below that cannot be listed fails the whole, since what is in it would be missing."""
        found: list[str] = []
        try:
            for folder, names, files in os.walk(self.root, onerror=_raise):
                names[:] = [n for n in names if not n.startswith(".")]
                below = Path(folder).relative_to(self.root)
                found += [(below / n).as_posix() for n in files if not n.startswith(".")]
        except OSError as e:
            return _failure(e)
        return tuple(sorted(found))

    def read(self, path: str, limit: int) -> bytes | Failure:
        """See Tree."""
        at = self.root / path
        if any((self.root / p).is_symlink() for p in Path(path).parents):
            return Failure("not-regular")
        try:
            descriptor = os.open(at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            return Failure("not-regular") if at.is_symlink() else _failure(e)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return Failure("not-regular")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(limit + 1)
        except OSError as e:
            return _failure(e)
        finally:
            os.close(descriptor)
        return content if len(content) <= limit else Failure("file-too-large", size=max(found.st_size, len(content)))


def _raise(error: OSError) -> None:
    raise error


def _failure(error: OSError) -> Failure:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return Failure("no-such-file")
    return Failure("denied" if isinstance(error, PermissionError) else "io", error.strerror or "")


@dataclass(slots=True)
class Recorder:
    """A tree that reads each file once and remembers what was read, for the digest."""

    tree: Tree
    taken: dict[str, bytes | Failure] = field(default_factory=dict)
    _files: tuple[str, ...] | Failure | None = None

    def files(self) -> tuple[str, ...] | Failure:
        """See Tree."""
        if self._files is None:
            self._files = self.tree.files()
        return self._files

    def read(self, path: str, limit: int) -> bytes | Failure:
        """See Tree."""
        if path not in self.taken:
            self.taken[path] = self.tree.read(path, limit)
        return self.taken[path]
