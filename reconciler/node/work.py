"""What runs side by side on a node, each in a process of its own and with a deadline: commands, and fragments of this program."""

import errno
import json
import os
import pwd
import select
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

OUTPUT_LIMIT = 8 << 20
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
# nobody with the one capability to read everything: it can write nothing
READER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"] + [
    "--%s=-all,+dac_read_search" % which for which in ("inh-caps", "ambient-caps", "bounding-set")
]
CODES = {errno.ENOENT: "missing", errno.ENOTDIR: "missing", errno.EACCES: "denied", errno.EPERM: "denied"}


def first_bytes(path: str, limit: int) -> Any:
    """The first `limit` bytes of a file, or {"error": code}: what is missing or refuses to be read is told, not raised."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(fd, limit)
        finally:
            os.close(fd)
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}


def head(path: str, limit: int) -> Any:
    """The same as text."""
    data = first_bytes(path, limit)
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _become_nobody() -> None:
    """In the child, before exec: who may only look cannot write by looking."""
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


class Forked:
    """A function in a child process, its value as JSON on the child's standard output: what a Popen is for a command."""

    def __init__(self, function: Callable[[], Any]) -> None:
        out, err = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(function, out[1], err[1])
        self.returncode: Optional[int] = None
        try:
            os.setpgid(self.pid, self.pid)  # both sides do it: a deadline may come before the child has run at all
        except OSError as e:
            if e.errno not in (errno.ESRCH, errno.EACCES):  # it has ended already
                raise
        for end in (out[1], err[1]):
            os.close(end)
        self.stdout, self.stderr = os.fdopen(out[0], "rb", 0), os.fdopen(err[0], "rb", 0)

    @staticmethod
    def _run(function: Callable[[], Any], out: int, err: int) -> None:
        """In the child: whatever happens, it must not return into the parent's loop, whose requests are not its own."""
        status = 1
        try:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            for fd, source in ((0, null), (1, out), (2, err)):
                os.dup2(source, fd)
            data = json.dumps(function(), separators=(",", ":"), sort_keys=True).encode()
            while data:
                data = data[os.write(1, data) :]
            status = 0
        except BaseException as e:  # noqa: BLE001  (as said above)
            os.write(2, ("%s: %s" % (type(e).__name__, e)).encode("utf-8", "replace")[:4000])
        finally:
            os._exit(status)


Process = Union["subprocess.Popen[bytes]", Forked]


class Work:
    """One running command or function: what it said so far, and until when it may."""

    def __init__(self, job: Dict[str, Any]) -> None:
        """`job`: `argv` or `function`, `deadline` in seconds, and `unprivileged` (a command as nobody)."""
        self.began = time.monotonic()
        self.until = self.began + job["deadline"]
        self.out: List[bytes] = []
        self.err: List[bytes] = []
        self.size = 0
        self.error = ""
        self.cpu = 0.0
        self.ended = 0.0
        self.process: Optional[Process] = None
        try:
            self.process = Forked(job["function"]) if "function" in job else _spawn(job["argv"], job.get("unprivileged", False))
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
                self.waited(0)

    def waited(self, seconds: float) -> bool:
        """Whether the process ended within that time; its CPU is taken with it, and that of the children it waited for."""
        if self.process is None or self.process.returncode is not None:
            return True
        until, pause = time.monotonic() + seconds, 0.0005
        while True:
            try:
                pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            except ChildProcessError:
                self.process.returncode = -signal.SIGKILL  # nobody knows any more how it ended
                return True
            if pid:
                self.process.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
                self.cpu = used.ru_utime + used.ru_stime
                self.ended = self.ended or time.monotonic()
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(pause * 2, 0.02)

    def answer(self) -> Dict[str, Any]:
        return {
            "out": b"" if self.error == "too-large" else b"".join(self.out),
            "err": b"".join(self.err)[-4096:],
            "status": self.process.returncode if self.process else None,
            "error": self.error,
            "ms": round(((self.ended or time.monotonic()) - self.began) * 1000, 1),
            "cpu": round(self.cpu * 1000, 1),
        }


def _spawn(argv: List[str], unprivileged: bool) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,
        preexec_fn=_become_nobody if unprivileged and os.geteuid() == 0 else None,  # noqa: PLW1509  (one thread)
    )


def run_all(jobs: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Do all jobs at once (see Work); their answers in the same order."""
    works: List[Work] = []
    try:
        for job in jobs:
            works.append(Work(job))
        _follow(works)
    except BaseException:
        for work in works:
            work.kill("io")
        raise
    finally:
        for work in works:
            _reap(work)
    return [work.answer() for work in works]


def run_apart(commands: List[List[str]], owners: List[str], deadline: float) -> List[Dict[str, Any]]:
    """Programs of environments, each with the path of its environment: as nobody, else as its owner, in root's place as READER."""
    answers = run_all([{"argv": argv, "deadline": deadline, "unprivileged": True} for argv in commands])
    for i, answer in enumerate(answers):
        if answer["status"] != 0 and answer["error"] in ("", "denied", "io") and os.geteuid() == 0:
            again = run_all([{"argv": _as(owners[i]) + commands[i], "deadline": deadline}])[0]
            answers[i] = answer if again["error"] == "missing" else again  # then it is setpriv that is missing
    return answers


def _as(owner: str) -> List[str]:
    info = os.stat(owner)
    return ["setpriv", "--reuid=%d" % info.st_uid, "--regid=%d" % info.st_gid, "--clear-groups"] if info.st_uid else READER


def _follow(works: List[Work]) -> None:
    poller = select.poll()
    poller.register(0, 0)  # only its end: requests that wait there are not ours to read
    streams: Dict[int, Tuple[Work, List[bytes]]] = {}
    for work in works:
        if work.process and work.process.stdout and work.process.stderr:
            for stream, kept in ((work.process.stdout, work.out), (work.process.stderr, work.err)):
                streams[stream.fileno()] = work, kept
                poller.register(stream.fileno(), select.POLLIN)
    while streams:
        _drain(poller, streams)


def _drain(poller: select.poll, streams: Dict[int, Tuple[Work, List[bytes]]]) -> None:
    now = time.monotonic()
    for fd, (work, _) in list(streams.items()):
        if now >= work.until or work.error:
            if not work.error:
                work.kill("deadline")
            poller.unregister(fd)
            del streams[fd]
    if not streams:
        return
    nearest = min(work.until for work, _ in streams.values())
    for fd, _ in poller.poll(max(0.0, nearest - now) * 1000):
        if fd == 0:  # who asked is gone, and nobody will read the answers
            for work, _ in streams.values():
                work.kill("io")
            return
        work, kept = streams[fd]
        block = os.read(fd, 1 << 16)
        if not block:
            work.ended = time.monotonic()
            poller.unregister(fd)
            del streams[fd]
            continue
        work.size += len(block)
        kept.append(block)
        if work.size > OUTPUT_LIMIT:
            work.kill("too-large")


def _reap(work: Work) -> None:
    if not work.process:
        return
    for patience in (1.0 if work.error else max(0.1, work.until - time.monotonic()), 1.0):
        if work.waited(patience):
            break
        work.kill(work.error or "deadline")
    for stream in (work.process.stdout, work.process.stderr):
        if stream:
            stream.close()
