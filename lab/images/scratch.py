"""Temporary trees of builds, named after the process that makes them, so that what a killed one left can be swept."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.disk import unmount_below

_PREFIX = "reconcile-lab-"


def _parent() -> Path:
    """Memory where there is some: a third of the time that a disk takes."""
    shm = Path("/dev/shm")
    return shm if shm.is_dir() else Path(tempfile.gettempdir())


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """An empty folder for the time of the block; mounts below it are undone."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-{os.getpid()}-", dir=_parent()))
    try:
        yield folder
    finally:
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(cache: Path) -> None:
    """Remove what builds of dead processes left, in memory and in the cache."""
    for folder in _parent().glob(f"{_PREFIX}*-*-*"):
        if not _alive(folder.name.removeprefix(_PREFIX).split("-")[1]):
            unmount_below(folder)
            shutil.rmtree(folder, ignore_errors=True)
    for partial in cache.glob(".*-*.*"):
        if not _alive(partial.name.rpartition(".")[2]):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()


def _alive(pid: str) -> bool:
    return not pid.isdigit() or Path("/proc", pid).exists()
