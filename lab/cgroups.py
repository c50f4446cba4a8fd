"""The control groups that hold a lab's processes: one group a node, so that a node can be ended as a whole, by pid."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from lab.errors import LabError
from lab.shell import wait_for

ROOT = Path("/sys/fs/cgroup")
# Not `cpu`: one v1 cpu group would give all nodes one share, and starve them beside busy processes of the host.
HIERARCHIES = ("systemd", "unified", "memory", "pids", "cpuacct")


def groups(name: str) -> list[Path]:
    """The group `name` in each hierarchy, whether it exists or not."""
    return [ROOT / hierarchy / name for hierarchy in HIERARCHIES]


def create(name: str, memory: int | None = None) -> None:
    """Make the group in each hierarchy; `memory` is a limit in bytes."""
    if not (ROOT / "systemd/cgroup.procs").exists():
        raise LabError(f"{ROOT}/systemd: the lab needs the hybrid cgroup layout (v1 with a named systemd hierarchy)")
    for group in groups(name):
        group.mkdir(parents=True, exist_ok=True)
    if memory is not None:
        (ROOT / "memory" / name / "memory.limit_in_bytes").write_text(str(memory))


def join(name: str, pid_file: Path) -> None:
    """Move the calling process there, its children follow; then its pid file says that this is done."""
    for group in groups(name):
        (group / "cgroup.procs").write_text(str(os.getpid()))
    pid_file.write_text(f"{os.getpid()}\n")


def pids(name: str) -> list[int]:
    """All processes at and below a group."""
    return [pid for group in (ROOT / "systemd" / name, ROOT / "unified" / name) for pid in _pids_below(group)]


def _pids_below(group: Path) -> Iterator[int]:
    for folder, _, _ in os.walk(group):
        try:
            yield from map(int, Path(folder, "cgroup.procs").read_text().split())
        except OSError:
            continue  # the group went away: so did its processes


def kill(name: str, timeout: float = 20.0) -> None:
    """SIGKILL everything in the group, by pid, until it is empty."""

    def empty() -> bool:
        left = pids(name)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not left

    wait_for(empty, f"end of the processes in {name}", timeout, interval=0.05)


def remove(name: str) -> None:
    """Remove the empty group and all below it."""
    for group in groups(name):
        for folder, _, _ in os.walk(group, topdown=False):
            wait_for(lambda folder=folder: _rmdir(Path(folder)), f"removal of {folder}", 10.0, 0.05)  # type: ignore[misc]


def _rmdir(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # a dying process still counts for a moment
        return False
    return True


def leader(name: str) -> int | None:
    """The pid, on the host, of the node's own PID 1."""
    for hierarchy in ("unified", "systemd"):
        try:
            found = (ROOT / hierarchy / name / "payload/init.scope/cgroup.procs").read_text().split()
        except OSError:
            continue
        if found:
            return int(found[0])
    return None
