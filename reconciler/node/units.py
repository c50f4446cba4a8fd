"""Transient systemd units of steps: a step outlives the connection, the controller, and this program."""

import os
import subprocess
import sys
from typing import Any, Dict, List, Tuple

from reconciler.node import state

PREFIX = "reconcile-step-"
RUNNING = ("activating", "deactivating", "reloading")


def name(token: int, number: int) -> str:
    return "%s%d-%d.service" % (PREFIX, token, number)


def _systemctl(*argv: str, allowed: Tuple[int, ...] = (0, 3, 4, 5)) -> str:
    """Output of systemctl; 3, 4 and 5 say that a unit is not active or that there is none.

    Raises Refused where systemd does not answer: without it no step could be told from none.
    """
    try:
        done = subprocess.run(
            ("systemctl",) + argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30
        )
    except FileNotFoundError:
        raise state.Refused("NoSystemd", detail="systemctl is not installed")
    except subprocess.TimeoutExpired:
        raise state.Refused("NoSystemd", detail="systemctl did not answer in 30 s")
    if done.returncode not in allowed:
        raise state.Refused("NoSystemd", detail=done.stderr.decode(errors="replace")[:500])
    return done.stdout.decode(errors="replace")


def active() -> List[Dict[str, Any]]:
    """Steps whose unit is at work now, as {token, step}; finished units that systemd still remembers are not."""
    found = []
    listing = _systemctl("list-units", "--all", "--plain", "--no-legend", "--no-pager", PREFIX + "*.service")
    for line in listing.splitlines():
        words = line.split()
        if len(words) < 4 or not words[0].startswith(PREFIX):
            continue
        if words[2] in RUNNING or (words[2] == "active" and words[3] != "exited"):
            token, number = words[0][len(PREFIX) : -len(".service")].split("-")
            found.append({"token": int(token), "step": int(number)})
    return found


def is_active(token: int, number: int) -> bool:
    return {"token": token, "step": number} in active()


def start(token: int, number: int, program: str, kill_after: float) -> None:
    """Start the step's runner; returns when it runs and can be waited for. `kill_after` in seconds, 0: never."""
    argv = ["systemd-run", "--quiet", "--unit=" + name(token, number), "--property=Type=notify"]
    # without RemainAfterExit a unit that has finished looks like one that never ran
    argv += ["--property=RemainAfterExit=yes", "--property=TimeoutStartSec=60", "--description=reconcile step"]
    if kill_after:
        argv.append("--property=RuntimeMaxSec=%d" % kill_after)
    argv += ["--", sys.executable, "-IS", program, "step", str(token), str(number)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90)
    except (FileNotFoundError, subprocess.TimeoutExpired) as e:
        raise state.Refused("NoSystemd", detail=str(e))
    if done.returncode:
        raise state.Refused("UnitRefused", unit=name(token, number), detail=done.stdout.decode(errors="replace")[:2000])


def forget(token: int, number: int) -> None:
    """Let systemd drop a finished unit, also a failed one; its record stays. A unit that is not there any more is fine."""
    _systemctl("stop", name(token, number))
    if _systemctl("is-failed", name(token, number), allowed=(0, 1, 3, 4)).strip() == "failed":
        _systemctl("reset-failed", name(token, number))


def pipe(token: int, number: int) -> str:
    """The FIFO whose write end the runner holds open: end of file means that the runner is gone."""
    return os.path.join(state.RUN, "step-%d-%d" % (token, number))
