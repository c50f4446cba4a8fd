"""The kernel's log of this boot, filtered where it lies: the journal, else /dev/kmsg, dmesg, or the files of a syslog daemon.

A log may have hundreds of megabytes: it is read in blocks, a block without a needle is dropped whole, and of each key (a needle,
or what `key` matches in a line) only the first and the last lines are kept.
"""

import collections
import datetime
import os
import re
import selectors
import subprocess
import time
from subprocess import DEVNULL, PIPE
from typing import Any, Deque, Dict, Iterator, List, Tuple

from reconciler.node.work import ENVIRONMENT

BLOCK = 1 << 20
LINE = 600  # bytes kept of a line
KEYS = 300
BANNER = b"Linux version "  # what every boot begins with, but for a line on microcode
BOOT = re.compile(rb"kernel: (?:\[ *0\.0+\] )?Linux version ")
KMSG = "/dev/kmsg"
FILES = ("/var/log/messages", "/var/log/kern.log", "/var/log/syslog")
FIELDS = "MESSAGE,PRIORITY,_SOURCE_MONOTONIC_TIMESTAMP"
Read = Tuple[str, bool]  # the cursor, and whether the time was over before the end


class NotHere(Exception):
    """This source has nothing to read; the text is a code, or what it said."""


class Kept:
    """Lines of interest, by key."""

    def __init__(self, arguments: Dict[str, Any]) -> None:
        self.needles = [needle.encode() for needle in arguments["needles"]]
        self.key = re.compile(arguments["key"].encode())
        self.most = arguments["most"]
        self.clear()

    def clear(self) -> None:
        self.counts: Dict[bytes, int] = {}
        self.first: List[Tuple[int, bytes]] = []
        self.last: Dict[bytes, Deque[Tuple[int, bytes]]] = {}
        self.number = 0
        self.whole = False

    def add(self, line: bytes, needle: bytes) -> None:
        found = self.key.search(line)
        key = found.group(0) if found else needle
        if key not in self.counts and len(self.counts) >= KEYS:
            key = needle
        self.number += 1
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count <= self.most:
            self.first.append((self.number, line[:LINE]))
        else:
            self.last.setdefault(key, collections.deque(maxlen=self.most)).append((self.number, line[:LINE]))

    def take(self, block: bytes, end: bytes, line: Any) -> None:
        """Every entry of a block that has a needle; `end` is what entries end with, `line` makes a line of one."""
        starts: Dict[int, Tuple[int, bytes]] = {}
        for needle in self.needles:
            at = block.find(needle)
            while at >= 0:
                after = block.find(end, at)
                after = len(block) if after < 0 else after
                begin = block.rfind(end, 0, at)
                starts.setdefault(begin + len(end) if begin >= 0 else 0, (after, needle))
                at = block.find(needle, after)
        for begin in sorted(starts):
            after, needle = starts[begin]
            self.add(line(block[begin:after]), needle)

    def lines(self) -> List[str]:
        every = sum(map(list, self.last.values()), self.first)
        return [line.decode("utf-8", "replace") for _, line in sorted(every)]


def stream(argv: List[str], until: float) -> Iterator[bytes]:
    """Blocks of what a command prints; it is ended when nobody reads on. Raises NotHere with what it said where it failed."""
    try:
        # of this fragment's process group: the deadline ends both
        process = subprocess.Popen(argv, env=ENVIRONMENT, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except OSError as e:
        raise NotHere("missing" if isinstance(e, FileNotFoundError) else e.strerror or str(e))
    pipes: Any = (process.stdout, process.stderr)
    out, err, said = pipes[0].fileno(), pipes[1].fileno(), b""
    try:
        with selectors.DefaultSelector() as selector:
            for fd in (out, err):
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, until - time.monotonic()))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    block = os.read(key.fd, BLOCK)
                    if not block:
                        selector.unregister(key.fd)
                    elif key.fd == out:
                        yield block
                    else:
                        said = (said + block)[:2000]
        if process.wait() != 0:
            raise NotHere(said.decode("utf-8", "replace").strip() or "status %d" % process.returncode)
    finally:
        process.kill()
        process.wait()
        for pipe in pipes:
            pipe.close()


def whole_blocks(pieces: Iterator[bytes], end: bytes, until: float) -> Iterator[Tuple[bytes, bool]]:
    """Blocks of whole entries, and whether the time is over with this one. The rest of a last entry without end is no entry."""
    parts: List[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < BLOCK and time.monotonic() < until:
            continue
        head, last, rest = b"".join(parts).rpartition(end)
        if last:
            yield head + last, time.monotonic() >= until
        parts, size = [rest], len(rest)
    rest, last, _ = b"".join(parts).rpartition(end)
    if last:
        yield rest + last, False


def journal_line(entry: bytes) -> bytes:
    """An entry of the export format as a line with priority, time and seconds since boot in front."""
    fields: Dict[bytes, bytes] = {}
    head, binary, body = entry.partition(b"\nMESSAGE\n")
    size = int.from_bytes(body[:8], "little") if binary else 0
    for text in (head + body[8 + size :]).split(b"\n"):
        name, _, value = text.partition(b"=")
        fields[name] = value
    if binary:  # it has line ends or bytes that are no text: eight bytes of length, then it
        fields[b"MESSAGE"] = body[8 : 8 + size]
    front = b"<%s>" % fields[b"PRIORITY"] if fields.get(b"PRIORITY", b"").isdigit() else b""
    if fields.get(b"__REALTIME_TIMESTAMP", b"").isdigit():
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(fields[b"__REALTIME_TIMESTAMP"]))
        front += moment.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00 ").encode()
    since = fields.get(b"_SOURCE_MONOTONIC_TIMESTAMP", b"")
    if since.isdigit():
        front += b"[%d.%06d] " % divmod(int(since), 1000000)
    return front + fields.get(b"MESSAGE", entry[-LINE:])


def journal(kept: Kept, boot: str, cursor: str, until: float) -> Read:
    argv = ["journalctl", "-q", "--no-pager", "-o", "export", "--output-fields=" + FIELDS]
    argv += ["_TRANSPORT=kernel", "_BOOT_ID=" + boot.replace("-", "")]
    # inclusive: where the first entry is not the one of the cursor, the journal no longer has that
    end, first, last = b"\n\n", True, cursor
    for block, over in whole_blocks(stream(argv + (["--cursor=" + cursor] if cursor else []), until + 1), end, until):
        if first:
            entry = block[: block.find(end)]
            if cursor and entry.partition(b"\n")[0] != b"__CURSOR=" + cursor.encode():
                raise LookupError
            kept.whole = bool(cursor) or BANNER in block[:8192]
        kept.take(block[len(entry) :] if first and cursor else block, end, journal_line)
        first = False
        at = block.rfind(b"__CURSOR=")
        if at >= 0:
            last = block[at + 9 : block.find(b"\n", at)].decode("utf-8", "replace")
        if over:
            return last, True
    if first:
        raise LookupError if cursor else NotHere("no-entries")
    return last, False


def kmsg(kept: Kept, boot: str, cursor: str, until: float) -> Read:
    after = int(cursor) if cursor else -1
    last, lost, first = after, False, True
    try:
        fd = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise NotHere("denied" if isinstance(e, PermissionError) else "missing")
    try:
        while time.monotonic() < until:
            try:
                record = os.read(fd, 1 << 14)
            except BlockingIOError:
                break
            except BrokenPipeError:  # what was next to be read is overwritten
                lost = True
                continue
            if not record:
                break
            line = record.partition(b"\n")[0]
            number = int(line.split(b",", 2)[1])
            if first:
                if after >= 0 and number > after + 1:
                    raise LookupError
                kept.whole, first = after >= 0 or number == 0, False
            if number > last:
                last = number
                kept.take(line.replace(b"\\x0a", b" "), b"\n", bytes)
    except PermissionError:
        raise NotHere("denied")
    finally:
        os.close(fd)
    if first:
        raise NotHere("no-entries")
    kept.whole = kept.whole and not lost
    return str(last), time.monotonic() >= until


def dmesg(kept: Kept, boot: str, cursor: str, until: float) -> Read:
    first, over = True, False
    try:
        for block, over in whole_blocks(stream(["dmesg", "-r"], until + 1), b"\n", until):
            kept.whole, first = (BANNER in block[:4096] if first else kept.whole), False
            kept.take(block, b"\n", bytes)
            if over:
                break
    except NotHere as e:
        raise NotHere("denied" if "not permitted" in str(e) else str(e))
    if first:
        raise NotHere("no-entries")
    return "", over


def syslog(kept: Kept, boot: str, cursor: str, until: float) -> Read:
    """The first file that is there, from the last boot that it tells of."""
    said = "missing"
    for path in FILES:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            said = "denied" if isinstance(e, PermissionError) else said
            continue
        with os.fdopen(fd, "rb", 0) as f:
            return _file(kept, f, path, cursor, until)
    raise NotHere(said)


def _file(kept: Kept, f: Any, path: str, cursor: str, until: float) -> Read:
    now = os.fstat(f.fileno())
    mark, offset = "%s:%d:" % (path, now.st_ino), 0
    if cursor:
        offset = int(cursor.rpartition(":")[2])
        if not cursor.startswith(mark) or offset > now.st_size:  # it was replaced or cut
            raise LookupError
        f.seek(offset)
        kept.whole = True
    over = False
    for block, over in whole_blocks(iter(lambda: f.read(BLOCK), b""), b"\n", until):
        offset += len(block)
        *_, begin = [-1] + [found.start() for found in BOOT.finditer(block)]
        if begin >= 0:  # another boot begins: all before was of an earlier one
            kept.clear()
            kept.whole = True
        kept.take(block[max(begin, 0) :], b"\n", bytes)
        if over:
            break
    return mark + str(offset), over


SOURCES = (("journal", journal), ("kmsg", kmsg), ("dmesg", dmesg), ("syslog", syslog))


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`needles`, `key` (a pattern), `most` (lines of a key, first and last each), `seconds`, `cursor` of an earlier answer or "".

    The answer is what facts/kernel_events.py says; `source` is "" where there is none.
    """
    with open("/proc/sys/kernel/random/boot_id") as f:
        boot = f.read().strip()
    until = time.monotonic() + arguments["seconds"]
    kept = Kept(arguments)
    tried: Dict[str, str] = {}
    of, of_boot, mark = (arguments["cursor"].split(" ", 2) + ["", "", ""])[:3]
    again = "other-boot" if of and of_boot != boot else ""
    for name, read in SOURCES:
        use = mark if of == name and of_boot == boot else ""
        again = again or ("other-source" if of and not use else "")
        for at in [use, ""] if use else [""]:
            kept.clear()
            try:
                end, more = read(kept, boot, at, until)
            except (LookupError, ValueError):
                again = "cursor-gone"
                continue
            except TimeoutError:
                tried[name] = "deadline"
                break
            except NotHere as e:
                tried[name] = str(e)[:300]
                break
            counts = {key.decode("utf-8", "replace"): count for key, count in kept.counts.items()}
            cursor = "%s %s %s" % (name, boot, end) if end else ""
            said = {"source": name, "lines": kept.lines(), "counts": counts, "cursor": cursor, "continued": bool(at)}
            return dict(said, boot=boot, tried=tried, again="" if at else again, whole=kept.whole, more=more)
    return {"source": "", "boot": boot, "tried": tried}
