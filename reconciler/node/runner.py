"""What a step's unit executes: the commands one after another, each outcome on disk before the next begins."""

import os
import socket
import subprocess
import time
from typing import Any, Dict, List

from reconciler.node import lease, state, steps, units, watch

TAIL = 16 << 10
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}


def _ready() -> None:
    """Tell systemd that the step can be waited for (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(b"READY=1", "\0" + address[1:] if address[0] == "@" else address)


def _tail(data: bytes) -> str:
    return data[-TAIL:].decode("utf-8", "replace")


def _command(command: Dict[str, Any]) -> Dict[str, Any]:
    began = time.monotonic()
    try:
        if "watch" in command:
            return dict(watch.watch(command["watch"]), seconds=round(time.monotonic() - began, 3))
        done = subprocess.run(
            command["argv"],
            input=command.get("stdin", "").encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(ENVIRONMENT, **command.get("env", {})),
            cwd="/",
        )
        result: Dict[str, Any] = {"status": done.returncode, "out": _tail(done.stdout), "err": _tail(done.stderr)}
    except (OSError, subprocess.TimeoutExpired) as e:
        result = {"status": None, "out": "", "err": getattr(e, "strerror", None) or str(e)}
    result["seconds"] = round(time.monotonic() - began, 3)
    return result


def main(token: int, number: int) -> int:
    """Exit status 0 when every command ended with 0. The record says the rest."""
    # both ends: opening only the write end would wait for a reader, and there need not be one
    held = os.open(units.pipe(token, number), os.O_RDWR | os.O_CLOEXEC)
    with state.locked():
        lease.check(token)
        commands = steps.update(token, number, state="started")["commands"]
    _ready()
    results: List[Dict[str, Any]] = []
    # no other holder can get a lease while this unit is active: one check before the first command is enough
    for command in commands:
        results.append(_command(command))
        steps.update(token, number, results=results)
        if results[-1]["status"] != 0:
            break
    failed = len(results) < len(commands) or any(r["status"] != 0 for r in results)
    steps.update(token, number, state="failed" if failed else "done", error="CommandFailed" if failed else "")
    os.close(held)
    return 1 if failed else 0
