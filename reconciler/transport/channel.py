"""A kept channel to a node program over any pair of byte streams: start it, ask it from many threads, notice its end."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.errors import Garbled, NodeRefused, ReconcileError, Unreachable
from reconciler.transport import base, program
from reconciler.transport.watchdog import Watchdog

REQUEST_LIMIT = 16 << 20  # what the program takes in one line
TAIL = 4096  # of what the node said on stderr: enough for the words of sudo or a traceback
FIRST = 200  # of what answered in the program's place
SETTLE = 2.0  # seconds for the exit status and the last words, which come after the end of the stream


class Stream(Protocol):
    """Bytes to and from a program that runs somewhere. Each of the three directions may be used by a thread of its own."""

    @property
    def received(self) -> int: ...

    def read(self) -> bytes:
        """The next block, waited for; empty at the end, also when the stream was aborted. Never raises."""
        ...

    def read_error(self) -> bytes:
        """The same of stderr."""
        ...

    def write(self, data: bytes) -> None:
        """Write all of it, however long that takes. Raises OSError where the stream has ended or was aborted."""
        ...

    def status(self, seconds: float) -> int | None:
        """The program's exit status, waited for; None where none came: the way to it was lost, or a signal ended it."""
        ...

    def abort(self) -> None:
        """End it at once: who reads or writes gets out. Never raises, never blocks for long."""
        ...

    def close(self) -> None:
        """After `abort` and after the readers ended: give everything back. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class End:
    """How a stream ended before the program spoke. `said` is its stderr, or else what it wrote instead of the program."""

    status: int | None
    said: str
    become: bool


def why_silent(end: End) -> ReconcileError:
    """The error for a program that never spoke. With sudo, both it and the shell have words for a command they do not find."""
    no_sudo = "sudo: command not found" in end.said or "sudo: not found" in end.said
    no_python = end.status == 127 or re.search(r"sudo: [^:\s]+: command not found", end.said)
    if end.become and (no_sudo or (end.status == 1 and not no_python and "sudo" in end.said.lower())):
        return Unreachable("BecomeRefused", status=end.status, detail=end.said)
    if no_python:
        return Garbled("NoPython", status=end.status, detail=end.said)
    if end.status is None:
        return Unreachable("ConnectionLost", stage="start", detail=end.said)
    return Garbled("ProgramEnded", status=end.status, detail=end.said)


def _again(error: ReconcileError) -> ReconcileError:
    """The same error for another thread: one exception object must not be raised in two."""
    return type(error)(error.reason, **error.data)


def _refusal(message: Mapping[str, Any]) -> NodeRefused:
    """`data` is the node's: it must not be able to name what is ours."""
    data = message.get("data")
    kept = {name: value for name, value in data.items() if name not in ("self", "reason")} if isinstance(data, dict) else {}
    return NodeRefused(message["refused"], **kept)


class ProgramChannel:
    """The protocol's `Channel` over a `Stream`.

    An answer that is late ends its request and not the channel; any other Unreachable or Garbled ends both (docs/adr/0010).
    `become`: the program was started through sudo, whose refusal is then told apart.
    """

    def __init__(self, stream: Stream, watchdog: Watchdog, deadline: float, become: bool = False) -> None:
        """Send the program and wait for its first line. Raises Unreachable or Garbled, with the stream closed."""
        self._stream, self._watchdog, self._become = stream, watchdog, become
        self._lock = threading.Lock()  # guards the five below
        self._dead: ReconcileError | None = None
        self._hello: Future[base.Hello] = Future()
        self._waiting: dict[int, Future[Mapping[str, Any]]] = {}
        self._given_up: set[int] = set()
        self._number = 0
        self._writing = threading.Lock()
        self._noise = b""
        self._tail = b""
        self._drainer = threading.Thread(target=self._drain, name="reconcile-drain", daemon=True)
        self._reader = threading.Thread(target=self._read, name="reconcile-read", daemon=True)
        self._drainer.start()  # first: the reader waits for its end
        self._reader.start()
        try:
            self._start(deadline)
        except ReconcileError:
            self.close()
            raise

    def _start(self, deadline: float) -> None:
        until = time.monotonic() + deadline
        late = Unreachable("DeadlinePassed", stage="start", deadline=deadline)
        self._write(program.preamble(), until, late)
        try:
            self.hello = self._hello.result(max(0.0, until - time.monotonic()))
        except TimeoutError:
            self._fail(late)
            raise late from None

    @property
    def received(self) -> int:
        return self._stream.received

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        """As the protocol says; also NodeRefused RequestTooLong, before anything is sent."""
        until = time.monotonic() + deadline
        late = Unreachable("DeadlinePassed", op=op, deadline=deadline)
        answer: Future[Mapping[str, Any]] = Future()
        with self._lock:
            self._number += 1
            number = self._number
        line = json.dumps({"id": number, "op": op, **fields}, separators=(",", ":")).encode() + b"\n"
        if len(line) > REQUEST_LIMIT:
            raise NodeRefused("RequestTooLong", op=op, size=len(line), limit=REQUEST_LIMIT)
        with self._lock:
            if self._dead:
                raise _again(self._dead)
            self._waiting[number] = answer
        try:
            self._write(line, until, late)
            message = answer.result(max(0.0, until - time.monotonic()))
        except TimeoutError:
            self._give_up(number)
            raise late from None
        if "refused" in message:
            raise _refusal(message)
        return dict(message["ok"])

    def _write(self, data: bytes, until: float, late: ReconcileError) -> None:
        """One line at a time. Raises TimeoutError where its turn did not come, and `late`, with the channel dead, where it was
        cut off: a node that takes nothing blocks the write, so that the watchdog has to end it."""
        if not self._writing.acquire(timeout=max(0.0, until - time.monotonic())):
            raise TimeoutError
        try:
            # where the stream has ended the reader sees it too, and knows more: exit status and last words
            with self._watchdog.after(until - time.monotonic(), lambda: self._fail(late)) as alarm, contextlib.suppress(OSError):
                self._stream.write(data)
        finally:
            self._writing.release()
        if alarm.fired:
            raise _again(late)

    def _give_up(self, number: int) -> None:
        """The program takes requests one by one, so that a short one may wait behind a slow probe: nothing is wrong with it."""
        with self._lock:
            if self._waiting.pop(number, None):
                self._given_up.add(number)

    def _drain(self) -> None:
        while block := self._stream.read_error():
            self._tail = (self._tail + block)[-TAIL:]

    def _read(self) -> None:
        try:
            for line in self._lines():
                self._take(line)
            self._fail(self._ended())
        except ReconcileError as e:
            self._fail(e)
        finally:  # without effect after the above; nobody shall wait for a reader that is gone
            self._fail(Unreachable("ConnectionLost"))

    def _take(self, line: bytes) -> None:
        """A line from the node. What a login shell prints may stand before the program's first words, also on their line."""
        if self._hello.done():
            self._dispatch(base.parse_answer(line))
        elif base.HELLO in line:
            self._hello.set_result(base.parse_hello(line[line.index(base.HELLO) :]))
        else:
            self._hear(line)

    def _hear(self, noise: bytes) -> None:
        self._noise += noise + b"\n"
        if len(self._noise) > base.NOISE_LIMIT:
            raise Garbled("NotTheProgram", detail=self._noise[:FIRST].decode("utf-8", "replace"))

    def _lines(self) -> Iterator[bytes]:
        pieces: list[bytes] = []
        size = 0
        while block := self._stream.read():
            *ends, rest = block.split(b"\n")
            for end in ends:
                yield b"".join([*pieces, end])
                pieces, size = [], 0
            pieces.append(rest)
            size += len(rest)
            if size > base.LINE_LIMIT:
                raise Garbled("AnswerTooLong", limit=base.LINE_LIMIT)
            if not self._hello.done() and size + len(self._noise) > base.NOISE_LIMIT:
                self._hear(b"".join(pieces))
        if not self._hello.done():
            self._noise += b"".join(pieces)

    def _dispatch(self, message: dict[str, Any]) -> None:
        with self._lock:
            if message["id"] in self._given_up:
                self._given_up.remove(message["id"])
                return
            waiting = self._waiting.pop(message["id"], None)
        if waiting is None:
            raise Garbled("WrongShape", detail=f"answer to no request: {message['id']}")
        with contextlib.suppress(InvalidStateError):  # its channel failed at the same moment: that was told first
            waiting.set_result(message)

    def _ended(self) -> ReconcileError:
        status = self._stream.status(SETTLE)
        self._drainer.join(SETTLE)
        said = self._tail.decode("utf-8", "replace").strip()
        if self._hello.done():
            return Unreachable("ConnectionLost", status=status, detail=said)
        return why_silent(End(status, said or self._noise[:FIRST].decode("utf-8", "replace").strip(), self._become))

    def _fail(self, error: ReconcileError) -> None:
        """The channel is over: `error` to all who wait and to all who ask later. The first one counts.

        A passed deadline is only its own request's: to all others the connection is lost.
        """
        late = error.reason == "DeadlinePassed"
        others = Unreachable("ConnectionLost", after=error.reason) if late else error
        with self._lock:
            if self._dead:
                return
            self._dead = others
            waiting, self._waiting = list(self._waiting.values()), {}
        futures: list[Future[Any]] = [self._hello, *waiting]
        for future in futures:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(_again(others))
        self._stream.abort()

    def close(self) -> None:
        """End the program on the node. What it started as a unit goes on. Never raises."""
        self._fail(Unreachable("ConnectionLost", after="Closed"))
        for thread in (self._reader, self._drainer):
            if thread is not threading.current_thread():
                thread.join(SETTLE)
        self._stream.close()
