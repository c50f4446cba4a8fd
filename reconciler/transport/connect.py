"""A TCP connection within a deadline, as ssh wants it: no delay of small packets, and a dead link is noticed."""

from __future__ import annotations

import errno
import socket
import threading
import time
from concurrent.futures import Future
from typing import Any

from reconciler.errors import Unreachable

DEAD_LINK = 30  # seconds without an acknowledgement after which the kernel gives a connection up
CODES = {
    errno.ECONNREFUSED: "ConnectionRefused",
    errno.ETIMEDOUT: "ConnectTimedOut",
    errno.ENETUNREACH: "NoRoute",
    errno.EHOSTUNREACH: "NoRoute",
    errno.EHOSTDOWN: "NoRoute",
    errno.ENETDOWN: "NoRoute",
    errno.EADDRNOTAVAIL: "NoRoute",
    errno.EACCES: "NoRoute",
    errno.EPERM: "NoRoute",  # a firewall rule of this machine
}

Address = tuple[socket.AddressFamily, Any]


def _resolve(host: str, port: int, deadline: float) -> list[Address]:
    """The addresses of `host`. The resolver cannot be interrupted: it runs aside, and may end after we have given up."""
    answer: Future[list[Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as e:
            answer.set_exception(e)

    threading.Thread(target=ask, name="reconcile-resolve", daemon=True).start()
    try:
        found = answer.result(max(0.0, deadline))
    except (OSError, UnicodeError) as e:
        late = isinstance(e, TimeoutError)
        detail = "no answer in time" if late else str(e)
        raise Unreachable("NameNotResolved", host=host, detail=detail) from None
    return [(family, address) for family, _, _, _, address in found]


def _literal(host: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):  # a name, then
        return []
    return [(family, address) for family, _, _, _, address in found]


def connect(host: str, port: int, deadline: float) -> socket.socket:
    """A connected socket. `host` is a name, an IPv4 or an IPv6 address; all addresses of a name are tried.

    Raises Unreachable: NameNotResolved, ConnectionRefused, ConnectTimedOut or NoRoute. With several addresses: the last one's.
    """
    until = time.monotonic() + deadline
    addresses = _literal(host, port) or _resolve(host, port, deadline)
    error = Unreachable("ConnectTimedOut", host=host, port=port)
    for i, (family, address) in enumerate(addresses):
        share = (until - time.monotonic()) / (len(addresses) - i)  # a dead first address must not use up all
        if share <= 0:
            break
        try:
            return _connected(family, address, share)
        except OSError as e:
            reason = "ConnectTimedOut" if isinstance(e, TimeoutError) else CODES.get(e.errno or 0, "NoRoute")
            error = Unreachable(reason, host=host, port=port, address=str(address[0]), detail=e.strerror or str(e))
    raise error


def _connected(family: socket.AddressFamily, address: Any, timeout: float) -> socket.socket:
    s = socket.socket(family, socket.SOCK_STREAM)
    try:
        s.settimeout(timeout)
        # before the handshake: paramiko writes small packets, and Nagle with delayed ACKs costs 40 ms at each
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_LINK * 1000)
        s.connect(address)
    except OSError:
        s.close()
        raise
    return s
