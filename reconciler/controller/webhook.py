"""Webhooks of GitHub, GitLab and Gitea: a valid one says "look at Git now", and nothing else of it is used.

So one that is sent again does no harm, and one that is lost costs only the interval at which Git is looked at in any case.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

from reconciler.errors import Usage

MOST_BYTES = 1 << 20  # of a body; what GitHub sends for a push of thousands of commits is below
DEADLINE = 10.0  # seconds of one connection, whatever it sends
AT_ONCE = 8  # connections that are served side by side; one more is closed
CLIENT = "webhook-client"  # the name of a thread that serves one
_PIECE = 1 << 16
_SECRET = (16, 4096)  # bytes


def secret_of(path: Path) -> bytes:
    """The secret in a file that only its owner may read, without the end of its line.

    Raises Usage: SecretUnreadable, SecretOpen (others may read it), SecretLength.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            secret = file.read(_SECRET[1] + 2).rstrip(b"\r\n")
    except OSError as e:
        raise Usage("SecretUnreadable", path=str(path), detail=e.strerror) from None
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077 or found.st_uid not in (0, os.geteuid()):
        raise Usage("SecretOpen", path=str(path), mode=f"{stat.S_IMODE(found.st_mode):04o}")
    if not _SECRET[0] <= len(secret) <= _SECRET[1]:
        raise Usage("SecretLength", path=str(path), size=len(secret), low=_SECRET[0], high=_SECRET[1])
    return secret


def genuine(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Whether whoever sent it knows the secret: by each of the three ways that the headers name, and at least by one.

    The signature is over the body as it came. Compared in constant time.
    """
    digest = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    wanted = {
        "X-Hub-Signature-256": b"sha256=" + digest,  # GitHub; Gitea sends it as well
        "X-Gitea-Signature": digest,
        "X-Gitlab-Token": secret,
    }
    said = [(value.encode("utf-8", "surrogateescape"), wanted[name]) for name in wanted if (value := headers.get(name)) is not None]
    right = [hmac.compare_digest(found, expected) for found, expected in said]  # all of them: a wrong one shortens nothing
    return bool(right) and all(right)


class Webhook:
    """Listens on `address` ("127.0.0.1", 8787) in threads of its own; `wake` is called for each valid webhook."""

    def __init__(self, address: tuple[str, int], secret: bytes, wake: Callable[[], None], deadline: float = DEADLINE) -> None:
        """Raises Usage(CannotListen)."""
        try:
            self._server = _Server(address, secret, wake, deadline)
        except (OSError, OverflowError) as e:
            detail = getattr(e, "strerror", None) or str(e)
            raise Usage("CannotListen", address=f"{address[0]}:{address[1]}", detail=detail) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """No further connection is taken; those that are open end by their deadline."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(HTTPServer):
    """A thread a connection, AT_ONCE at most."""

    def __init__(self, address: tuple[str, int], secret: bytes, wake: Callable[[], None], deadline: float) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.secret, self.wake, self.deadline = secret, wake, deadline
        self._room = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            threading.Thread(target=self._serve, args=(request, client_address), name=CLIENT, daemon=True).start()
        else:
            self.shutdown_request(request)

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client went away, or its time was up: nobody is left to be told
        finally:
            self.shutdown_request(request)
            self._room.release()


class _Timed(io.RawIOBase):
    """What a connection sends until a moment in time; TimeoutError after it, however slowly it came."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        super().__init__()
        self._connection, self._until = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """One request, one answer without a word, one close."""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Timed(self.connection, self._owner.deadline))

    @property
    def _owner(self) -> _Server:
        return cast(_Server, self.server)

    def do_POST(self) -> None:
        size = self._size()
        if isinstance(size, HTTPStatus):
            self._answer(size)
        elif not genuine(self._headers(), self._body(size), self._owner.secret):
            self._answer(HTTPStatus.FORBIDDEN)
        else:
            self._owner.wake()
            self._answer(HTTPStatus.NO_CONTENT)

    def _size(self) -> int | HTTPStatus:
        """Bytes of the body, which has to be said, once; a wrong one is refused before any of it is read."""
        said = self.headers.get_all("Content-Length") or []
        if len(said) != 1 or "Transfer-Encoding" in self.headers:
            return HTTPStatus.LENGTH_REQUIRED
        if not (said[0].isascii() and said[0].isdigit() and len(said[0]) < 20):
            return HTTPStatus.BAD_REQUEST
        size = int(said[0])
        return size if size <= MOST_BYTES else HTTPStatus.REQUEST_ENTITY_TOO_LARGE

    def _headers(self) -> dict[str, str]:
        """Each once; one that is given twice is as good as wrong."""
        names = ("X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token")
        return {name: "\n".join(map(str, found)) for name in names if (found := self.headers.get_all(name))}

    def _body(self, size: int) -> bytes:
        """All of it, or what came before the connection ended, whose signature is then wrong."""
        pieces: list[bytes] = []
        while size > 0 and (piece := self.rfile.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _answer(self, status: HTTPStatus) -> None:
        self.connection.settimeout(1.0)
        self.send_response_only(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself, such as another method, as barely as all else."""
        self.close_connection = True
        self.request_version = "HTTP/1.0"  # a first line that was none leaves another, and then no header is sent
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus.BAD_REQUEST)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: whoever can reach the port could fill the log."""
