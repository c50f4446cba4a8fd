"""The cache of built artefacts: NAME-DIGEST files or folders, built aside and renamed, the oldest pruned."""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lab.shell import stage

KEEP = 6  # of each name: labs with other subnets, and branches beside this one
_RUN = Path("/run")
YOUNG = 3600.0  # seconds in which an artefact is never pruned: a lab may just have started with it


def obtain(cache: Path, name: str, key: str, build: Callable[[Path], None], suffix: str = "") -> Path:
    """The artefact `name` of digest `key`, built by `build(temporary path)` where the cache lacks it."""
    path = cache / f"{name}-{key}{suffix}"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = cache / f".{path.name}.{os.getpid()}"
        try:
            with stage(f"build {name}"):
                build(partial)
            partial.rename(path)
        finally:
            _remove(partial)
    os.utime(path)
    prune(cache, name, suffix, keep=path)
    return path


def note_use(state: Path, artefacts: Iterable[Path]) -> None:
    """Say in a lab's state directory what it serves and mounts: that is never pruned while the lab is up."""
    (state / "artefacts").write_text("".join(f"{path}\n" for path in artefacts))


def _in_use() -> set[str]:
    return {line for notes in _RUN.glob("reconcile-*/artefacts") for line in notes.read_text().splitlines()}


def prune(cache: Path, name: str, suffix: str, keep: Path) -> None:
    """Drop all but the last used artefacts of this name; never one of a running lab."""
    kept = _in_use() | {str(keep)}
    found = [p for p in cache.glob(f"{name}-*{suffix}") if len(p.name) == len(keep.name) and str(p) not in kept]
    found.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for path in found[KEEP - 1 :]:
        if time.time() - path.stat().st_mtime > YOUNG:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
