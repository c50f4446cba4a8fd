"""What paramiko needs around it: a counted socket, its handshake under our deadline, its errors in our words."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import paramiko
from paramiko.packet import Packetizer
from paramiko.ssh_exception import IncompatiblePeer

from reconciler.errors import Garbled, ReconcileError, Unreachable
from reconciler.transport import base
from reconciler.transport.hostkeys import HostKey, KnownHosts

FIRST = 200  # of what a server said that does not speak SSH
POLL = 5.0  # seconds between paramiko's looks at its own state while nothing arrives; closing does not wait for it
KEEPALIVE = 15  # seconds: keeps NAT entries alive, and gives the kernel something to miss an acknowledgement for
OPEN_CONNECT_FAILED = 2  # RFC 4254, 5.1: the jump host did try
RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")  # of the key type ssh-rsa; its own name would mean SHA-1


def silence() -> None:
    """Nothing of paramiko reaches the terminal: every failure of it is an error value here, told once and by us."""
    logger = logging.getLogger("paramiko")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    logger.setLevel(logging.CRITICAL + 1)


class Wire:
    """A socket, or a channel through a jump host, as paramiko uses it; it counts, and closing wakes whoever reads."""

    def __init__(self, inner: socket.socket | paramiko.Channel) -> None:
        self.inner = inner
        self.received = 0
        self.first = b""

    def settimeout(self, seconds: float | None) -> None:
        """paramiko looks ten times a second whether it was closed: with hundreds of idle links that is all it does."""
        self.inner.settimeout(None if seconds is None else max(seconds, POLL))

    def recv(self, size: int) -> bytes:
        block = self.inner.recv(size)
        self.received += len(block)
        if len(self.first) < FIRST:
            self.first += block[: FIRST - len(self.first)]
        if self.received > base.NOISE_LIMIT and not self.speaks_ssh:
            raise EOFError  # paramiko would go on collecting a line that never ends
        return block

    @property
    def speaks_ssh(self) -> bool:
        """A server may say some lines before its version; that they are 200 bytes at most is our choice."""
        return self.first.startswith(b"SSH-") or b"\nSSH-" in self.first

    def send(self, data: bytes) -> int:
        return self.inner.send(data)

    def close(self) -> None:
        # close() alone leaves a thread that stands in recv() there for ever
        with contextlib.suppress(OSError, EOFError):
            self.inner.shutdown(socket.SHUT_RDWR)
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class UntimedPacketizer(Packetizer):
    """paramiko starts a timer thread a handshake, which outlives one that failed: our own deadline covers it."""

    def start_handshake(self, timeout: float) -> None:
        """Nothing to start."""


class Factory:
    """Makes the paramiko transport of one connection; key types that are known for the host are asked for first."""

    def __init__(self, types: Sequence[str]) -> None:
        self._types = types

    def __call__(self, sock: Any, **options: Any) -> paramiko.Transport:
        transport = paramiko.Transport(sock, packetizer_class=UntimedPacketizer, **options)
        offered = transport.get_security_options()
        known = [name for t in self._types for name in (RSA_SIGNATURES if t == "ssh-rsa" else (t,))]
        first = [name for name in known if name in offered.key_types]
        offered.key_types = [*first, *(name for name in offered.key_types if name not in first)]
        return transport


class Policy(paramiko.MissingHostKeyPolicy):
    """Asked for every host key, since paramiko itself is given none: it knows neither patterns nor revoked keys."""

    def __init__(self, known: KnownHosts, host: str, port: int) -> None:
        self._known, self._host, self._port = known, host, port

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        self._known.check(self._host, self._port, HostKey(key.get_name(), key.asbytes()))


def identity(path: str) -> paramiko.PKey:
    """The private key in `path`, with its certificate where one lies beside it. Raises Unreachable IdentityUnreadable."""
    try:
        return paramiko.PKey.from_path(Path(path).expanduser())
    except OSError as e:
        raise Unreachable("IdentityUnreadable", path=path, detail=e.strerror or type(e).__name__) from None
    except Exception as e:  # noqa: BLE001 the libraries below raise whatever they like at a damaged key
        # a TypeError is how cryptography says that a passphrase is needed
        encrypted = isinstance(e, TypeError | paramiko.PasswordRequiredException)
        detail = "encrypted" if encrypted else type(e).__name__
        raise Unreachable("IdentityUnreadable", path=path, detail=detail) from None


# what sshd says in place of its version when it has enough: it is no other server, and will be glad to talk later
BUSY = (b"Exceeded MaxStartups", b"Not allowed at this time")


def explain(error: BaseException, wire: Wire, transport: paramiko.Transport | None, where: dict[str, Any]) -> ReconcileError:
    """What a failed login means."""
    if isinstance(error, ReconcileError):
        return error
    if not wire.speaks_ssh:
        if wire.first.startswith(BUSY):
            return Unreachable(
                "ConnectionRefused", **where, stage="handshake", detail=wire.first.decode("utf-8", "replace").strip()
            )
        if wire.first:
            return Garbled("NotTheProgram", **where, stage="ssh", detail=wire.first.decode("utf-8", "replace"))
        return Unreachable("ConnectionLost", **where, stage="handshake")
    if isinstance(error, paramiko.ChannelException):
        return Unreachable("ConnectionRefused", **where, stage="session", detail=error.text)
    detail = str(error) or type(error).__name__
    greeted = transport is not None and transport.initial_kex_done
    if isinstance(error, IncompatiblePeer):
        return Unreachable("ConnectionRefused", **where, stage="handshake", detail=detail)
    if isinstance(error, paramiko.AuthenticationException) or (greeted and isinstance(error, paramiko.SSHException)):
        return Unreachable("AuthenticationRefused", **where, detail=detail)
    return Unreachable("ConnectionLost", **where, stage="login" if greeted else "handshake", detail=detail)


def explain_jump(error: BaseException, jump: str | None, host: str, port: int, late: bool) -> ReconcileError:
    """What it means that a jump host opened no connection to `host`: it may not, it is gone, or the node is not there."""
    where = {"jump": jump, "host": host, "port": port, "detail": str(error) or type(error).__name__}
    if late:
        return Unreachable("DeadlinePassed", **where, stage="jump")
    if isinstance(error, paramiko.ChannelException) and error.code == OPEN_CONNECT_FAILED:
        return Unreachable("ConnectionRefused", **where, stage="jump")
    refused = isinstance(error, paramiko.ChannelException)
    return Unreachable("JumpFailed", **where, inner="ForwardingRefused" if refused else "ConnectionLost")
