"""Look, never touch: commands started side by side, each with a deadline of its own; files read straight."""

import base64
import errno
import json
import os
import pwd
import selectors
import signal
import stat
import subprocess
import time
from typing import Any, Dict, List, Optional

from reconciler.node import available, files

OUTPUT_LIMIT = 8 << 20
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
CODES = {errno.ENOENT: "missing", errno.ENOTDIR: "missing", errno.EACCES: "denied", errno.EPERM: "denied"}


def _become_nobody() -> None:
    """In the child, before exec: who may only look cannot write by looking."""
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


class Command:
    """One running command: what it said so far, and until when it may."""

    def __init__(self, argv: List[str], deadline: float, unprivileged: bool = False) -> None:
        self.began = time.monotonic()
        self.until = self.began + deadline
        self.out: List[bytes] = []
        self.err: List[bytes] = []
        self.size = 0
        self.error = ""
        self.process: "Optional[subprocess.Popen[bytes]]" = None
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
                preexec_fn=_become_nobody if unprivileged and os.geteuid() == 0 else None,  # noqa: PLW1509  (one thread)
            )
        except OSError as e:
            self.error = CODES.get(e.errno or 0, "io")
        except (ValueError, subprocess.SubprocessError):  # a null byte in an argument; no user nobody
            self.error = "io"

    def kill(self, why: str) -> None:
        """Kill the whole process group. A process that hangs in the kernel (state D) is left behind, and reported."""
        self.error = why
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except OSError:  # it has ended, or became another user's and is left behind
                self.process.poll()

    def answer(self) -> Dict[str, Any]:
        status = self.process.poll() if self.process else None
        return {
            "out": b"" if self.error == "too-large" else b"".join(self.out),
            "err": b"".join(self.err)[-4096:],
            "status": status,
            "error": self.error,
            "ms": round((time.monotonic() - self.began) * 1000, 1),
        }


def run_all(wanted: List[Any]) -> List[Dict[str, Any]]:
    """Run all (argv, deadline) or (argv, deadline, unprivileged) at once; their answers in the same order."""
    commands: List[Command] = []
    try:
        for one in wanted:
            commands.append(Command(*one))
        _follow(commands)
    except BaseException:
        for command in commands:
            command.kill("io")
        raise
    finally:
        for command in commands:
            _reap(command)
    return [command.answer() for command in commands]


def _follow(commands: List[Command]) -> None:
    with selectors.DefaultSelector() as selector:
        for command in commands:
            if command.process and command.process.stdout and command.process.stderr:
                selector.register(command.process.stdout, selectors.EVENT_READ, (command, command.out))
                selector.register(command.process.stderr, selectors.EVENT_READ, (command, command.err))
        while selector.get_map():
            _drain(selector)


def _drain(selector: selectors.BaseSelector) -> None:
    now = time.monotonic()
    keys = list(selector.get_map().values())
    for key in keys:
        command = key.data[0]
        if now >= command.until or command.error:
            if not command.error:
                command.kill("deadline")
            selector.unregister(key.fileobj)
    if not selector.get_map():
        return
    nearest = min(key.data[0].until for key in selector.get_map().values())
    for key, _ in selector.select(max(0.0, nearest - now)):
        command, kept = key.data
        block = os.read(key.fd, 1 << 16)
        if not block:
            selector.unregister(key.fileobj)
            continue
        command.size += len(block)
        kept.append(block)
        if command.size > OUTPUT_LIMIT:
            command.kill("too-large")


def _reap(command: Command) -> None:
    if not command.process:
        return
    for patience in (1.0 if command.error else max(0.1, command.until - time.monotonic()), 1.0):
        try:
            command.process.wait(timeout=patience)
            break
        except subprocess.TimeoutExpired:
            command.kill(command.error or "deadline")
    for stream in (command.process.stdout, command.process.stderr):
        if stream:
            stream.close()


def read(path: str, limit: int) -> Dict[str, Any]:
    """The bytes of a regular file; anything else is an error code. /proc files say size 0, so the limit counts what is read."""
    began = time.monotonic()
    answer: Dict[str, Any] = {"out": b"", "err": b"", "status": None, "error": ""}
    try:
        answer.update(_regular(path, limit))
    except (OSError, ValueError) as e:
        answer.update(_unreadable(e))
    if len(answer["out"]) > limit:
        answer.update(out=b"", error="too-large")
    answer["ms"] = round((time.monotonic() - began) * 1000, 1)
    return answer


def _regular(path: str, limit: int) -> Dict[str, Any]:
    # before it is opened: opening some devices is an act (a watchdog starts, a tape rewinds)
    if not stat.S_ISREG(os.stat(path).st_mode):
        return {"error": "not-regular"}
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return {"error": "not-regular"}
        return {"out": f.read(limit + 1)}


def _unreadable(error: Exception) -> Dict[str, Any]:
    if isinstance(error, OSError):
        return {"error": CODES.get(error.errno or 0, "io"), "err": (error.strerror or "").encode()}
    return {"error": "io", "err": str(error).encode("utf-8", "replace")}


def look(part: Dict[str, Any]) -> Dict[str, Any]:
    answer: Dict[str, Any] = {"out": b"", "err": b"", "status": None, "error": "", "ms": 0.0}
    try:
        answer["out"] = json.dumps(files.look(part["path"], part["owner"], part["group"]), sort_keys=True).encode()
    except (OSError, ValueError) as e:
        answer.update(_unreadable(e))
    return answer


def probe(wanted: Dict[str, List[Dict[str, Any]]]) -> Dict[str, List[Dict[str, Any]]]:
    """All parts of all facts: {key: [part]} -> {key: [answer]}, `out` and `err` as text or, where that is not UTF-8, base64."""
    runs = [(key, i, part) for key, parts in wanted.items() for i, part in enumerate(parts) if part["do"] == "run"]
    ran = run_all([(part["argv"], part["deadline"], part.get("unprivileged", False)) for _, _, part in runs])
    done = {(key, i): answer for (key, i, _), answer in zip(runs, ran)}  # noqa: B905  (no strict= before Python 3.10)
    for key, i, part in runs:
        # what nobody cannot do is no answer: ask again as who we are
        if part.get("unprivileged") and done[(key, i)]["status"] != 0:
            done[(key, i)] = run_all([(part["argv"], part["deadline"])])[0]
    answers: Dict[str, List[Dict[str, Any]]] = {}
    for key, parts in wanted.items():
        answers[key] = []
        for i, part in enumerate(parts):
            answer = done[(key, i)] if part["do"] == "run" else _other(part)
            answers[key].append(_texts(answer))
    return answers


def _other(part: Dict[str, Any]) -> Dict[str, Any]:
    if part["do"] == "read":
        return read(part["path"], part["limit"])
    if part["do"] == "stat":
        return look(part)
    return available.ask(part, run_all)


def _texts(answer: Dict[str, Any]) -> Dict[str, Any]:
    for name in ("out", "err"):
        data = answer.pop(name)
        if data:
            try:
                answer[name] = data.decode("utf-8")
            except UnicodeDecodeError:
                answer[name + "64"] = base64.b64encode(data).decode()
    return {k: v for k, v in answer.items() if v not in ("", None)}
