"""Writing what must still be there after a power cut: aside, fsynced, then named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BLOCK = 2**22
READERS = 4  # files that are hashed at a time by one process


def canonical(data: Any) -> bytes:
    """JSON that is the same for the same value."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest_of(data: Any) -> str:
    """SHA-256 of a JSON value."""
    return hashlib.sha256(canonical(data)).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            total.update(block)
    return total.hexdigest()


def file_digests(paths: Sequence[Path]) -> Iterator[str]:
    """The same of many files in their order, some at a time: hashing uses one core a file."""
    with ThreadPoolExecutor(min(READERS, max(len(paths), 1))) as pool:
        yield from pool.map(file_digest, paths)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; a reader sees the old text or the new one. Raises OSError, and then leaves the old one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def link(path: Path, target: str) -> None:
    """Let a symbolic link lead to `target`, in one step."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(path)
    sync(path.parent)


def sealed(data: dict[str, Any]) -> str:
    """A JSON text that carries the digest of the rest of it as `seal`."""
    return json.dumps({**data, "seal": digest_of(data)}, indent=1, ensure_ascii=False) + "\n"


def unsealed(text: str) -> dict[str, Any] | None:
    """What `sealed` wrote; None where it is not whole or was altered."""
    try:
        data = json.loads(text)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    seal = data.pop("seal", None)
    return data if seal == digest_of(data) else None
