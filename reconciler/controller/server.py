"""The controller's socket: one thread a client. A client that goes away ends its own thread and nothing else."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from reconciler.controller import protocol
from reconciler.controller.protocol import Message, Refusal, Request

CLIENTS = 64  # at once; a hundred pushes in a minute are over sooner than that
PATIENCE = 10.0  # seconds for a client to say what it wants, and to take what it is told
_CREDENTIALS = struct.Struct("3i")
# (request, name of the caller's account, whether the client is still there) -> messages, the end last
Answer = Callable[[Request, str, Callable[[], bool]], Iterator[Message]]


class Server:
    """Listens at `path` from its making on; `answer` is called for each request in a thread of its own."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self._path, self._answer = path, answer
        self._room = threading.BoundedSemaphore(CLIENTS)
        self._ended = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)  # of a controller that was killed: this one holds the lock of the folder
        former = os.umask(0o177)
        try:
            with protocol.address(path) as name:
                self._listening.bind(name)
        finally:
            os.umask(former)
        with contextlib.suppress(PermissionError):  # without root the group is our own already
            os.chown(path, -1, path.parent.stat().st_gid)
        path.chmod(0o660)
        self._listening.listen(CLIENTS)
        self._thread = threading.Thread(target=self._serve, name="socket", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """No further client. Those that listen are let go by the end of the process."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                if self._ended.wait(0.1):  # closed, or out of descriptors for a moment
                    return
                continue
            threading.Thread(target=self._one, args=(connection,), name="client", daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # whoever is gone need not be told
            connection.settimeout(PATIENCE)
            if not self._room.acquire(blocking=False):
                connection.sendall(protocol.encode(protocol.end(1, "TooManyClients", limit=CLIENTS)))
                return
            try:
                self._talk(connection)
            finally:
                self._room.release()

    def _talk(self, connection: socket.socket) -> None:
        request = protocol.read_request(connection)
        if request is None:
            return
        if isinstance(request, Refusal):
            connection.sendall(protocol.encode(protocol.end(1, request.reason, **request.data)))
            return
        for message in self._answer(request, _account(connection), lambda: _there(connection)):
            connection.sendall(protocol.encode(message))


def _there(connection: socket.socket) -> bool:
    """Whether the client has not closed its end. (A socket with a timeout waits for it in spite of MSG_DONTWAIT.)"""
    asked = select.poll()
    asked.register(connection, select.POLLIN | select.POLLRDHUP)
    return not any(found & (select.POLLHUP | select.POLLRDHUP | select.POLLERR) for _, found in asked.poll(0))


def _account(connection: socket.socket) -> str:
    """Who calls, as the kernel says."""
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
