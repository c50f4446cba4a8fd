"""The digest of everything that made an artefact: its name in the cache. Pure but for reading the sources."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path


def digest(parts: Mapping[str, str | bytes]) -> str:
    """16 hex digits of a set of named parts; the order does not matter, names and boundaries do."""
    total = hashlib.sha256()
    for name in sorted(parts):
        value = parts[name]
        data = value.encode() if isinstance(value, str) else value
        total.update(f"{len(name)}:{name}={len(data)}:".encode())
        total.update(data)
    return total.hexdigest()[:16]


def sources(paths: Iterable[Path]) -> dict[str, bytes]:
    """The content and mode of files, and of all files below folders, by path."""
    found: dict[str, bytes] = {}
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                found[f"{file.relative_to(path.parent)}:{file.stat().st_mode & 0o111:o}"] = file.read_bytes()
    return found
