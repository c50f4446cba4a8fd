"""What a step's unit executes: the commands one after another, each outcome on disk before the next begins."""

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List

from reconciler.node import fragments, lease, state, steps, units, watch

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


def fragment(token: int, number: int, index: int) -> int:
    """Carry out a command that is a part of this program: the exit status is the fragment's."""
    record = steps.record(token, number)
    with open(record["fragments"]) as f:
        fragments.take(json.load(f))
    command = record["commands"][index]
    return fragments.run(command["fragment"], command["arguments"])


def _command(command: Dict[str, Any], place: List[int]) -> Dict[str, Any]:
    """The command's outcome; `place`: token, step and index of the command."""
    began = time.monotonic()
    try:
        result = watch.watch(command["watch"]) if "watch" in command else _process(command, place)
    except (OSError, subprocess.TimeoutExpired) as e:
        result = {"status": None, "out": "", "err": getattr(e, "strerror", None) or str(e)}
    result["seconds"] = round(time.monotonic() - began, 3)
    return result


def _process(command: Dict[str, Any], place: List[int]) -> Dict[str, Any]:
    """A fragment runs in a process of its own, as any other command."""
    own = [sys.executable, "-IS", sys.argv[0], "fragment"] + [str(n) for n in place]
    done = subprocess.run(
        own if "fragment" in command else command["argv"],
        input=command.get("stdin", "").encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(ENVIRONMENT, **command.get("env", {})),
        cwd="/",
    )
    return {"status": done.returncode, "out": _tail(done.stdout), "err": _tail(done.stderr)}


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
    for index, command in enumerate(commands):
        results.append(_command(command, [token, number, index]))
        steps.update(token, number, results=results)
        if results[-1]["status"] != 0:
            break
    failed = len(results) < len(commands) or any(r["status"] != 0 for r in results)
    steps.update(token, number, state="failed" if failed else "done", error="CommandFailed" if failed else "")
    os.close(held)
    return 1 if failed else 0
