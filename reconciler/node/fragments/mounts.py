"""What is mounted, and how full it is: a file system that does not answer costs its own deadline and nothing else."""

import json
import os
import re
import select
import signal
import time
from typing import Any, Dict, List, Tuple

Mount = Tuple[int, bytes]


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`pseudo`: types that are not asked; `local`: types that no network is behind; `seconds`: for each of the others.

    -> {"mountinfo": text, "space": {mount id: [device, unit, blocks, free, available, files, files free, files available] |
    {"error": code}}}. All local ones share a child until one of them hangs; of the others each has its own, side by side.
    """
    with open("/proc/self/mountinfo", "rb") as f:
        said = f.read()
    local: List[Mount] = []
    others: List[Mount] = []
    for number, point, kind in _asked(said, set(arguments["pseudo"])):
        (local if kind in arguments["local"] else others).append((number, point))
    space = follow([local] + [[mount] for mount in others], arguments["seconds"])
    left = [[mount] for mount in local if mount[0] not in space]  # behind one that hung
    space.update(follow(left, arguments["seconds"]))
    return {"mountinfo": said.decode("utf-8", "replace"), "space": space}


def _asked(said: bytes, pseudo: Any) -> List[Tuple[int, bytes, str]]:
    """The topmost mount at each point outside /proc and /sys; proc(5): field 5 is the point, the type stands behind the dash."""
    top: Dict[bytes, Tuple[int, bytes, str]] = {}
    for line in said.splitlines():
        front, dash, back = line.partition(b" - ")
        words = front.split(b" ")
        if dash and len(words) > 5 and words[0].isdigit():
            point = re.sub(rb"\\([0-3][0-7]{2})", lambda m: bytes([int(m.group(1), 8)]), words[4])
            top[point] = (int(words[0]), point, back.split(b" ")[0].decode("ascii", "replace"))
    return [m for m in top.values() if m[2] not in pseudo and not re.match(rb"/(?:proc|sys)(?:/|$)", m[1])]


def space_of(point: bytes) -> List[Any]:
    device, s = os.stat(point).st_dev, os.statvfs(point)
    return [
        "%d:%d" % (os.major(device), os.minor(device)),
        s.f_frsize,
        s.f_blocks,
        s.f_bfree,
        s.f_bavail,
        s.f_files,
        s.f_ffree,
        s.f_favail,
    ]


def follow(queues: List[List[Mount]], seconds: float, ask: Any = space_of) -> Dict[int, Any]:
    """Answers by mount id. Of a queue whose child hangs, the mount it hangs at is `deadline`, and those behind it are missing."""
    children = [(_child(queue, ask), queue) for queue in queues if queue]
    open_ends = {end: b"" for (_, end), _ in children}
    reading, until = set(open_ends), time.monotonic() + seconds
    while reading and time.monotonic() < until:
        for end in select.select(sorted(reading), [], [], max(0.0, until - time.monotonic()))[0]:
            block = os.read(end, 1 << 16)
            open_ends[end] += block
            if not block:
                reading.discard(end)
    found: Dict[int, Any] = {}
    for (pid, end), queue in children:
        hung = end in reading
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG if hung else 0)  # one that hangs in the kernel is left to init
        os.close(end)
        answers = [json.loads(line) for line in open_ends[end].split(b"\n")[:-1]]
        found.update({number: answer for (number, _), answer in zip(queue, answers)})  # noqa: B905  (no strict= before Python 3.10)
        for number, _ in queue[len(answers) : len(answers) + 1]:
            found[number] = {"error": "deadline" if hung else "io"}
    return found


def _child(queue: List[Mount], ask: Any) -> Tuple[int, int]:
    """A process that writes one line for each mount, and the end to read them from."""
    end, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        return pid, end
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # while it hangs it must not hold the pipes on which our own answer ends
            os.dup2(null, fd)
        for _, point in queue:
            os.write(into, json.dumps(_answer(point, ask)).encode() + b"\n")
    finally:
        os._exit(0)


def _answer(point: bytes, ask: Any) -> Any:
    try:
        return ask(point)
    except OSError as e:
        return {"error": {1: "denied", 2: "missing", 13: "denied"}.get(e.errno or 0, os.strerror(e.errno or 0))}
