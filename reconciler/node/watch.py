"""Watch a unit that was started: it is well when it stays up, and ill as soon as systemd says so."""

import subprocess
import time
from typing import Any, Dict, Tuple

STEADY = 3.0  # seconds that a service has to run without a break: most that cannot run end within the first
PATIENCE = 120.0  # seconds to get there: systemd itself gives a start 90 (DefaultTimeoutStartSec)
PAUSE = 0.2
LINES = 12  # of the unit's journal, in the answer of one that is ill
TOLD = ("ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts")
SHOW = ("systemctl", "show", "--property=Id,Type,InvocationID,Job,ConditionResult," + ",".join(TOLD), "--")

Fields = Dict[str, str]


def _run(*argv: str) -> str:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
    return done.stdout.decode(errors="replace")


def look(name: str) -> Fields:
    pairs = (line.partition("=") for line in _run(*(SHOW + (name,))).splitlines())
    return {key: value for key, _, value in pairs}


def judge(seen: Fields) -> str:
    """`well` and `ill` are final; `up`: well if it stays so; `wait`: it is on its way."""
    active, oneshot = seen.get("ActiveState"), seen.get("Type") == "oneshot"
    if active == "activating" and oneshot and seen.get("SubState") == "start":
        return "up"  # at its work, which may take hours
    if seen.get("Job", "0") not in ("", "0"):
        return "wait"  # what is seen is of before
    if active == "failed" or seen.get("SubState", "").startswith("auto-restart"):
        return "ill"
    if active in ("activating", "deactivating"):
        return "wait"
    if active in ("active", "reloading", "refreshing"):
        return "up" if seen.get("Id", "").endswith(".service") and not oneshot else "well"
    # systemd forgets a oneshot that nothing refers to at its end: then it says no more than that nothing went wrong
    return "well" if oneshot and seen.get("Result") == "success" and seen.get("ConditionResult") != "no" else "ill"


def settle(name: str) -> Tuple[bool, Fields]:
    """Whether the unit came up and stayed so for STEADY seconds, in one and the same invocation; and what was seen last."""
    until = time.monotonic() + PATIENCE
    since, invocation = 0.0, ""
    while True:
        seen, now = look(name), time.monotonic()
        found = judge(seen)
        if found in ("well", "ill"):
            return found == "well", seen
        if found == "up" and not invocation:
            since, invocation = now, seen.get("InvocationID", "") or "?"
        elif invocation and (found == "wait" or seen.get("InvocationID", "") not in ("", invocation)):
            return False, seen  # it was up, and had to be started again
        if invocation and now - since >= STEADY:
            return True, seen
        if now >= until:
            return False, seen
        time.sleep(PAUSE)  # systemd tells changes over D-Bus alone, which the standard library does not speak


def watch(name: str) -> Dict[str, Any]:
    """The answer of a command: status 0 for a unit that is well; else its journal's last lines and its state."""
    well, seen = settle(name)
    state = " ".join("%s=%s" % (key, seen.get(key, "")) for key in TOLD)
    said = "" if well else _run("journalctl", "-q", "--no-pager", "-o", "cat", "-b", "-n", str(LINES), "-u", name)
    return {"status": 0 if well else 1, "out": said, "err": state}
