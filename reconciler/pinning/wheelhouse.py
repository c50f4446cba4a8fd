"""A folder of wheels, each known by its hash; a file is whole when it is there, since it arrives by a rename."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.apply.statedir import fsync_directory

INDEX = ".hashes.json"
PARTS = ".parts"


def write_text(path: Path, text: str) -> None:
    """Replace a file that everybody may read; the old one stays until the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    fsync_directory(path.parent)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(slots=True)
class Wheelhouse:
    """`hashes`: file name -> SHA-256. A file that moved since it was hashed is hashed again."""

    root: Path
    hashes: dict[str, str] = field(default_factory=dict)
    _known: dict[str, list[object]] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path) -> Wheelhouse:
        """The folder, made where it is missing. What a fetch that was cut off left is removed."""
        root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(root / PARTS, ignore_errors=True)
        found = cls(root)
        found._known = _read_index(root / INDEX)
        for file in sorted(root.glob("*.whl")):
            found._take(file)
        found._save()
        return found

    def by_hash(self) -> dict[str, str]:
        """SHA-256 -> file name."""
        return {digest: name for name, digest in self.hashes.items()}

    @contextmanager
    def parts(self) -> Iterator[Path]:
        """A folder on the same file system, for what is not whole yet."""
        folder = self.root / PARTS
        folder.mkdir(exist_ok=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def add(self, file: Path) -> str:
        """Take a whole file in; its hash."""
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        target = self.root / file.name
        file.chmod(0o644)
        file.replace(target)
        fsync_directory(self.root)
        self._take(target)
        self._save()
        return self.hashes[target.name]

    def _take(self, file: Path) -> None:
        about = file.stat()
        stamp: list[object] = [about.st_size, about.st_mtime_ns]
        known = self._known.get(file.name, [])
        digest = str(known[2]) if known[:2] == stamp and len(known) == 3 else sha256(file)
        self.hashes[file.name] = digest
        self._known[file.name] = [*stamp, digest]

    def _save(self) -> None:
        kept = {name: self._known[name] for name in self.hashes}
        if kept != _read_index(self.root / INDEX):
            write_text(self.root / INDEX, json.dumps(kept, indent=0, sort_keys=True))


def _read_index(path: Path) -> dict[str, list[object]]:
    """What was hashed before; nothing where it cannot be read, since everything can be hashed again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    shaped = isinstance(found, dict) and all(isinstance(value, list) for value in found.values())
    return dict(found) if shaped else {}
