"""Steps: intent on disk before, outcome on disk after, and a unit in between that survives whoever asked for it."""

import errno
import json
import os
import select
import time
import zlib
from typing import Any, Dict, List, Optional, Tuple

from reconciler.node import files, lease, restarts, state, units

REBOOT_PATIENCE = 900.0  # seconds for a node that was told to restart to go down: units may take minutes to stop
KEPT = 200  # settled records that stay for `state rebuild` and for people
UNFINISHED = ("intended", "started")
LONGEST = 3600.0  # seconds in one select: it takes no infinite ones


def _file(token: int, number: int) -> str:
    return state.path("steps", "%d-%d.json" % (token, number))


def record(token: int, number: int) -> Dict[str, Any]:
    """The step's record. Raises Refused NoSuchStep."""
    found = state.read_record(_file(token, number))
    if found is None:
        raise state.Refused("NoSuchStep", token=token, step=number)
    return found


def update(token: int, number: int, **fields: Any) -> Dict[str, Any]:
    changed = dict(record(token, number), **fields)
    state.write_record(_file(token, number), changed)
    return changed


def begin(request: Dict[str, Any], program: bytes) -> Dict[str, Any]:
    """Carry out one step under the lease `token`; a `file` or `exchange` at once, `commands` in a unit of their own.

    `inventory` is what the node will remember of the step's resources once it is done and settled. The answer is the step's
    record: `done` or `failed` for a file, `started` for commands, which `wait` then follows. `reboot` (`resource`, `wanted`, `path`
    of the file that says what came of it) beside commands: they restart the node, and only a new boot is their end.
    """
    token, number, action = request["token"], request["step"], request["action"]
    with state.locked():
        lease.check(token)
        if state.read_record(_file(token, number)) is not None:
            raise state.Refused("StepExists", token=token, step=number)
        intent = {name: request[name] for name in ("token", "step", "plan", "title", "resources", "inventory")}
        intent.update(boot_id=state.boot_id(), state="intended", wall=time.time(), results=[], settled=False)
        intent["commands"] = action.get("commands", [])
        if "reboot" in action:
            intent["reboot"] = state.boottime()
            _note_reboot(action["reboot"])
        intent["fragments"] = _store_fragments(request.get("fragments"))
        state.write_record(_file(token, number), intent)
        if "file" in action or "exchange" in action:
            return _write_file(token, number, action)
        os.makedirs(state.RUN, 0o700, exist_ok=True)
        if not os.path.exists(units.pipe(token, number)):
            os.mkfifo(units.pipe(token, number), 0o600)
        stored = _store(program)
    # outside the lock: the runner takes it itself before its first command
    try:
        units.start(token, number, stored, action.get("kill_after", 0))
    except state.Refused as refusal:
        return update(token, number, state="failed", error=refusal.code, detail=refusal.data.get("detail", ""))
    return record(token, number)


def _note_reboot(reboot: Dict[str, Any]) -> None:
    """For which resource the node restarts and what that is to bring: it must not restart for the same again and again."""
    known = (state.read_record(state.path("reboots.json")) or {}).get("reboots", {})
    known[reboot["resource"]] = {"wanted": reboot["wanted"], "boot_id": state.boot_id(), "path": reboot["path"]}
    state.write_record(state.path("reboots.json"), {"reboots": known})


def _forget_reboots() -> None:
    """Notes whose `path` has the word that was wanted: what the restart was for is there, and another loss is a new one."""
    known = (state.read_record(state.path("reboots.json")) or {}).get("reboots", {})
    left = {name: note for name, note in known.items() if note["wanted"] not in _words(note.get("path", ""))}
    if left != known:
        state.write_record(state.path("reboots.json"), {"reboots": left})


def _words(path: str) -> List[str]:
    try:
        with open(path, errors="replace") as f:
            return f.read(1 << 14).split()
    except OSError:  # a driver that is not loaded has no such file
        return []


def _write_file(token: int, number: int, action: Dict[str, Any]) -> Dict[str, Any]:
    try:
        if "exchange" in action:
            files.exchange(**action["exchange"])
        else:
            _write_and_note(action["file"])
    except state.Refused as refusal:
        return update(token, number, state="failed", error=refusal.code, data=refusal.data)
    except (KeyError, TypeError, ValueError) as e:  # left as intended it would be read as a write that was cut off
        return update(token, number, state="failed", error="Failed", detail="%s: %s" % (type(e).__name__, e))
    return update(token, number, state="done")


def _write_and_note(file: Dict[str, Any]) -> None:
    """Units that `restart` names are noted before the file is replaced, or a crash between the two would be forgotten; and once
    more after, for one that was started in between and read the old file."""
    units_of_it = file.get("restart", [])
    if units_of_it:
        restarts.note(units_of_it, file["path"])
    files.write(file["path"], file["content"], file["mode"], file["owner"], file["group"])
    if units_of_it:
        restarts.note(units_of_it, file["path"])


def _store(program: bytes) -> str:
    """This program as a file, for the unit: named by its content, so that an older step keeps the one that it started with."""
    text = zlib.decompress(program)
    target = state.path("program", "%08x.py" % zlib.crc32(text))
    if not os.path.exists(target):
        state.write_atomically(target, text)
    return target


def _store_fragments(sources: Optional[Dict[str, str]]) -> str:
    """What a step's commands need of this program beyond itself, as a file named by its content; none: empty."""
    if not sources:
        return ""
    text = json.dumps(sources).encode()
    target = state.path("program", "%08x.json" % zlib.crc32(text))
    if not os.path.exists(target):
        state.write_atomically(target, text)
    return target


def look(token: int, number: int) -> Dict[str, Any]:
    """The record with what is true now: `started` becomes `interrupted` when neither its boot nor its unit is there any more."""
    found = record(token, number)
    if "reboot" in found and found["state"] != "intended" and not found["settled"]:
        return _rebooted(found)
    if found["state"] in UNFINISHED and (found["boot_id"] != state.boot_id() or not units.is_active(token, number)):
        found = record(token, number)  # it may have ended between the two looks
        if found["state"] in UNFINISHED:
            found = dict(found, state="interrupted")
    return found


def _rebooted(found: Dict[str, Any]) -> Dict[str, Any]:
    """A reboot is done in another boot, whatever became of the commands: they may have been killed by what they asked for."""
    if found["boot_id"] != state.boot_id():
        return dict(found, state="done")
    if found["state"] != "failed" and state.boottime() - found["reboot"] > REBOOT_PATIENCE:
        return dict(found, state="failed", error="DidNotGoDown")
    return found if found["state"] == "failed" else dict(found, state="started")


def pending() -> List[Dict[str, Any]]:
    """Every step that no controller has settled yet, oldest first."""
    found = []
    for token, number in _numbers():
        seen = look(token, number)
        if not seen.get("settled"):
            found.append(seen)
    return found


def every() -> List[Dict[str, Any]]:
    return [look(token, number) for token, number in _numbers()]


def _numbers() -> List[List[int]]:
    try:
        names = os.listdir(state.path("steps"))
    except FileNotFoundError:
        return []
    return sorted([int(part) for part in name[: -len(".json")].split("-")] for name in names if name.endswith(".json"))


def settle(token: int, steps: List[List[int]]) -> Dict[str, Any]:
    """The controller knows these outcomes: mark them, let their units go, and take what was done into the inventory.

    Those that another controller settled meanwhile stay as they are: what they brought is older than what the inventory has by now.
    """
    with state.locked():
        lease.check(token)
        for step_token, number in steps:
            seen = look(step_token, number)
            if seen["settled"]:
                continue
            if seen["state"] in UNFINISHED:
                raise state.Refused("StepActive", steps=[{"token": step_token, "step": number}])
            if seen["state"] == "done" and seen["inventory"]:
                merge_inventory(seen["inventory"])
            if seen["commands"]:
                units.forget(step_token, number)
            if os.path.exists(units.pipe(step_token, number)):
                os.unlink(units.pipe(step_token, number))
            update(step_token, number, state=seen["state"], settled=True)
        _forget_reboots()
        _trim()
        return {}


def _trim() -> None:
    settled = [pair for pair in _numbers() if record(*pair).get("settled")]
    for token, number in settled[:-KEPT]:
        os.unlink(_file(token, number))


def inventory() -> Dict[str, Any]:
    """What this tool created or changed on this node: resource -> {spec, created, plan, commit}."""
    found = state.read_record(state.path("inventory.json"))
    return found["resources"] if found else {}


def merge_inventory(news: Dict[str, Any]) -> None:
    known = inventory()
    for name, entry in news.items():
        created = known.get(name, {}).get("created") or entry.get("created")
        known[name] = dict(entry, created=bool(created))
    state.write_record(state.path("inventory.json"), {"resources": known})


class Waiter:
    """A wait for one step, as something that `select` can watch: the FIFO ends when the runner does."""

    def __init__(self, request: Any, token: int, number: int, seconds: float) -> None:
        self.request, self.token, self.number = request, token, number
        self.until = time.monotonic() + seconds
        self.fd = -1
        self.open()

    def open(self) -> None:
        self.close()
        try:
            self.fd = os.open(units.pipe(self.token, self.number), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            if e.errno != errno.ENOENT:
                raise

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def ready(self) -> Optional[Dict[str, Any]]:
        """The step's record when it is over or the time is up; None: go on waiting."""
        seen = look(self.token, self.number)
        if seen["state"] not in UNFINISHED or time.monotonic() >= self.until:
            self.close()
            return seen
        return None


def wait_any(waiters: List[Waiter], stdin: int) -> Tuple[List[Waiter], bool]:
    """Block until a request can be read (second answer) or some of `waiters` may be over (first answer)."""
    now = time.monotonic()
    timeouts = [min(max(0.0, w.until - now), LONGEST) for w in waiters]
    # a runner that is still starting has not opened its pipe, which select cannot be told: look again soon
    timeouts += [0.05 for w in waiters if w.fd < 0]
    fds = [w.fd for w in waiters if w.fd >= 0]
    readable, _, _ = select.select(fds + [stdin], [], [], min(timeouts) if timeouts else None)
    over = []
    for waiter in waiters:
        if waiter.fd in readable:
            waiter.close()
        if waiter.fd < 0 or time.monotonic() >= waiter.until:
            over.append(waiter)
    return over, stdin in readable
