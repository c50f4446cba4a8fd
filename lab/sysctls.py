"""Kernel settings of the host that labs share: raised by the first lab, restored by the last one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# 4 inotify instances a booting systemd: the default of 128 stops the 32nd node
_WANTED = {"fs/inotify/max_user_instances": 8192, "net/ipv4/ip_forward": 1}
_PROC = Path("/proc/sys")


def acquire(run: Path, user: str) -> None:
    """Raise the settings on behalf of the lab `user`; what they were is remembered once for all labs."""
    with _shared(run) as folder:
        for key, wanted in _WANTED.items():
            was, live = folder / f"{key.replace('/', '.')}.was", _PROC / key
            if not was.exists():
                was.write_text(live.read_text())
            if int(live.read_text()) < wanted:
                live.write_text(str(wanted))
        (folder / f"{user}.user").touch()


def release(run: Path, user: str) -> None:
    """Drop the lab `user`; with the last one the settings are as before."""
    if not (run / "reconcile-lab-sysctls").exists():
        return
    with _shared(run) as folder:
        (folder / f"{user}.user").unlink(missing_ok=True)
        if any(folder.glob("*.user")):
            return
        for key in _WANTED:
            was = folder / f"{key.replace('/', '.')}.was"
            if was.exists():
                (_PROC / key).write_text(was.read_text())
                was.unlink()
        folder.rmdir()


@contextmanager
def _shared(run: Path) -> Iterator[Path]:
    lock = run / "lock"
    lock.mkdir(exist_ok=True)
    handle = os.open(lock / "reconcile-lab-sysctls.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        folder = run / "reconcile-lab-sysctls"
        folder.mkdir(exist_ok=True)
        yield folder
    finally:
        os.close(handle)
