"""Stand-in for `systemd-run --unit=NAME --property=Type=notify ... -- COMMAND`: there is no systemd in a fast test.

The command becomes a process of its own session that outlives its caller, as a transient unit does; this returns when the
command said READY=1, or 1 when it ended before. Its state is a file in $NODE/run/units for the stand-in of systemctl.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path


def supervise(unit: Path, command: list[str]) -> None:
    """Run the command in a session of its own, and write how it ended."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    process = subprocess.Popen(command)
    unit.write_text("active running")
    status = process.wait()
    ended = unit.with_name(f"{unit.name}.new")
    ended.write_text("failed failed" if status else "active exited")
    ended.replace(unit)


def main() -> int:
    name = next(a for a in sys.argv if a.startswith("--unit=")).partition("=")[2]
    unit = Path(os.environ["NODE"], "run/units", name)
    unit.parent.mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(f"\0reconcile-test-{os.getpid()}")
    os.environ["NOTIFY_SOCKET"] = f"@reconcile-test-{os.getpid()}"
    unit.write_text("activating start")
    over, writer = os.pipe()  # its other end is open as long as the supervisor lives
    if os.fork() == 0:
        supervise(unit, sys.argv[sys.argv.index("--") + 1 :])
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([listener.fileno(), over], [], [], 60)
    return 0 if listener.fileno() in ready else 1


sys.exit(main())
