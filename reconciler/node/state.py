"""What the node remembers: atomic records below ROOT, the boot it is in, and a clock that a wrong date cannot fool."""

import errno
import fcntl
import json
import os
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

ROOT = "/var/lib/reconcile"
RUN = "/run/reconcile"
CLOCK_BOOTTIME = 7  # time.CLOCK_BOOTTIME has a name only from Python 3.7 on; the number is Linux's ABI
VERSION = 1


class Refused(Exception):
    """A request that is not carried out. `code` is for programs, `data` says with what; nothing was written."""

    def __init__(self, code: str, **data: Any) -> None:
        Exception.__init__(self, code)
        self.code = code
        self.data = data


def boot_id() -> str:
    """The kernel's random id of this boot."""
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read().strip()


def boottime() -> float:
    """Seconds since boot, suspended time included. Never the wall clock: that one may be set back."""
    return time.clock_gettime(CLOCK_BOOTTIME)


def path(*names: str) -> str:
    return os.path.join(ROOT, *names)


def fsync_directory(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(directory: str, mode: int = 0o700) -> None:
    """Every missing directory down to `directory`, of this mode whatever the umask is. They last: without their parents' fsync a
    power cut may take them, and all that was fsynced in them. One that is there may have been made by a program that was killed
    before its fsync."""
    parent = os.path.dirname(directory)
    if os.path.isdir(directory):
        fsync_directory(parent)
        return
    make_directories(parent, mode)
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        return
    os.chmod(directory, mode)
    fsync_directory(parent)


def write_atomically(target: str, data: bytes, mode: int = 0o600) -> None:
    """Readers see the old content or the new one, also after a power cut."""
    directory = os.path.dirname(target)
    make_directories(directory)
    temporary = "%s.%d.new" % (target, os.getpid())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.rename(temporary, target)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    fsync_directory(directory)


def write_record(target: str, record: Dict[str, Any]) -> None:
    write_atomically(target, json.dumps(dict(record, version=VERSION), sort_keys=True).encode())


def read_record(target: str) -> Optional[Dict[str, Any]]:
    """The record, or None where there is none. A newer version's, or one that is no JSON object, is refused: never guessed."""
    try:
        with open(target) as f:
            record = json.load(f)
    except FileNotFoundError:
        return None
    except ValueError:
        raise Refused("DamagedRecord", path=target)
    if not isinstance(record, dict) or not isinstance(record.get("version"), int):
        raise Refused("DamagedRecord", path=target)
    if record["version"] > VERSION:
        raise Refused("NewerRecord", path=target, version=record.get("version"), supported=VERSION)
    return record


@contextmanager
def locked() -> Iterator[None]:
    """One node program at a time decides about the lease and the records. Held for milliseconds."""
    make_directories(ROOT)
    fd = os.open(path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
