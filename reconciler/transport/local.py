"""The node program as a child process of the controller: for a cluster of one machine, and for the controller's own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import IO

from reconciler.errors import Garbled
from reconciler.model.desired import DesiredNode
from reconciler.transport import program
from reconciler.transport.channel import ProgramChannel
from reconciler.transport.watchdog import Watchdog

BLOCK = 1 << 16
GRACE = 1.0  # seconds for a program that is not at work to notice the end of its input


class ChildStream:
    """The standard streams of a child process."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        # a session of its own: an interrupt typed at the controller's terminal is the controller's to handle
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            start_new_session=True,
        )
        self.received = 0

    def _pipe(self, pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise ValueError("the child was started without its pipes")
        return pipe

    def read(self) -> bytes:
        block = self._pipe(self._process.stdout).read(BLOCK)
        self.received += len(block)
        return block

    def read_error(self) -> bytes:
        return self._pipe(self._process.stderr).read(BLOCK)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._pipe(self._process.stdin).write(view) :]

    def status(self, seconds: float) -> int | None:
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else None

    def abort(self) -> None:
        """A write of another thread may stand in the pipe, so that closing it is not enough: the child has to go."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):  # in state D even a killed process stays
            self._process.wait(GRACE)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            self._pipe(pipe).close()


class LocalTransport:
    """Every node is this machine. The program runs as the controller's own user, who may write where he is root."""

    def __init__(self, python: str = sys.executable) -> None:
        self._argv = program.argv(python)
        self._watchdog = Watchdog()

    def open(self, node: DesiredNode, deadline: float) -> ProgramChannel:
        """`node` only names it. Raises Garbled (NoPython, ...) or Unreachable DeadlinePassed."""
        try:
            stream = ChildStream(self._argv)
        except OSError as e:
            raise Garbled("NoPython", node=node.name, detail=os.strerror(e.errno or 0)) from None
        return ProgramChannel(stream, self._watchdog, deadline)

    def close(self) -> None:
        self._watchdog.close()
