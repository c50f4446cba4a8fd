"""Who has devices of the NVIDIA driver open: every process' open files are looked through, by name alone."""

import errno
import os
from typing import Any, Dict, List, Set

GONE = (errno.ENOENT, errno.ESRCH)  # the process ended meanwhile
CLOSED = (errno.EACCES, errno.EPERM)


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`root` stands before /proc, /sys and /etc.

    -> {"loaded", "users": [...], "seen": processes, "denied": those whose files may not be seen, "hertz", "passwd": {uid: name}}.
    """
    root = arguments.get("root", "")
    loaded = os.path.exists(root + "/proc/driver/nvidia/version") or os.path.exists(root + "/sys/module/nvidia")
    answer: Dict[str, Any] = {"loaded": loaded, "users": [], "seen": 0, "denied": 0, "hertz": os.sysconf("SC_CLK_TCK")}
    if not loaded:  # nothing else makes these devices
        return answer
    proc = os.open(root + "/proc", os.O_RDONLY | os.O_DIRECTORY)
    counted = not root and os.stat("/proc/self/fd").st_size > 0  # Linux 6.2 and later say there how many are open
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        try:
            answer["seen"] += 1
            if counted and os.stat(pid + "/fd", dir_fd=proc).st_size == 0:  # most are threads of the kernel
                continue
            devices = _devices(pid, proc)
            if devices:
                answer["users"].append(_about(root, pid, proc, devices))
        except OSError as e:
            if e.errno in CLOSED:
                answer["denied"] += 1
            elif e.errno not in GONE:
                raise
    os.close(proc)
    wanted = {user["uid"] for user in answer["users"]}
    return dict(answer, passwd=_names(root, wanted))


def _devices(pid: str, proc: int) -> List[str]:
    """readlink never opens what an open file leads to: a dead network file system cannot hold this up."""
    found: Set[str] = set()
    folder = os.open(pid + "/fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
    try:
        for fd in os.listdir(folder):
            try:
                target = os.readlink(fd, dir_fd=folder)
            except OSError as e:
                if e.errno in GONE:
                    continue
                raise
            if target[:11] == "/dev/nvidia":
                found.add(target)
    finally:
        os.close(folder)
    return sorted(found)


def _read(pid: str, name: str, proc: int) -> bytes:
    fd = os.open(pid + "/" + name, os.O_RDONLY, dir_fd=proc)
    try:
        return os.read(fd, 1 << 12)
    finally:
        os.close(fd)


def _about(root: str, pid: str, proc: int, devices: List[str]) -> Dict[str, Any]:
    """Of the command line only what it begins with: the rest may hold secrets."""
    stat = _read(pid, "stat", proc).decode("utf-8", "replace")
    argv0 = _read(pid, "cmdline", proc).partition(b"\0")[0][:300]
    owner = os.stat(pid, dir_fd=proc)
    return {
        "pid": int(pid),
        "stat": stat,
        "argv0": argv0.decode("utf-8", "replace"),
        "uid": owner.st_uid,
        "cgroup": _read(pid, "cgroup", proc).decode("utf-8", "replace"),
        "devices": devices,
    }


def _names(root: str, wanted: Set[int]) -> Dict[str, str]:
    """From the file alone: a directory service that hangs must not take the answer with it."""
    names: Dict[str, str] = {}
    if not wanted:
        return names
    with open(root + "/etc/passwd", errors="replace") as f:
        for line in f:
            cells = line.split(":")
            if len(cells) > 2 and cells[2].isdigit() and int(cells[2]) in wanted:
                names.setdefault(cells[2], cells[0])
    return names
