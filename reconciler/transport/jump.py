"""Jump hosts: one connection that many nodes stand behind, opened once, checked for each, and not stormed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from reconciler.errors import ReconcileError, Unreachable
from reconciler.model.desired import SshAccess
from reconciler.transport.hostkeys import SSH_PORT, KnownHosts

if TYPE_CHECKING:
    from reconciler.transport.ssh import SshConnection

# At a time and a jump host: sshd drops new logins at random from its 10th unfinished one on (MaxStartups 10:30:100),
# and the nodes behind may stand on one machine.
HANDSHAKES = 8

Login = Callable[[SshAccess, float], "SshConnection"]


class Jump:
    """One jump host: a connection that all nodes behind it share, opened by the first of them."""

    def __init__(self) -> None:
        self.handshakes = threading.BoundedSemaphore(HANDSHAKES)
        self._lock = threading.Lock()
        self._opening: Future[SshConnection] | None = None

    def connection(self, access: SshAccess, until: float, login: Login) -> SshConnection:
        """The shared connection. Who comes while it is being opened waits for that attempt, and shares its failure."""
        opening, mine = self._attempt()
        if mine:
            _settle(opening, login, access, until)
        try:
            connection = opening.result(max(0.0, until - time.monotonic()))
        except TimeoutError:
            raise Unreachable("DeadlinePassed", stage="jump") from None
        except ReconcileError as e:
            raise type(e)(e.reason, **e.data) from None
        # another node's lines let this connection be opened: this one's have to accept the same key
        KnownHosts(access.known_hosts).check(access.host, access.port, connection.host_key())
        return connection

    def _attempt(self) -> tuple[Future[SshConnection], bool]:
        """The attempt that counts, and whether it is the caller's to make: there is none yet, it failed, or it was lost."""
        with self._lock:
            last = self._opening
            if last is not None and (not last.done() or (not last.exception() and last.result().alive)):
                return last, False
            self._opening = Future()
            opening = self._opening
        if last is not None and not last.exception():
            last.result().close()
        return opening, True

    def close(self) -> None:
        with self._lock:
            opening, self._opening = self._opening, None
        if opening and opening.done() and not opening.exception():
            opening.result().close()


def _settle(opening: Future[SshConnection], login: Login, access: SshAccess, until: float) -> None:
    try:
        opening.set_result(login(access, until))
    except BaseException as e:  # noqa: BLE001 those who wait for this attempt have to hear of its end, whatever it was
        opening.set_exception(e)


def jump_access(access: SshAccess) -> SshAccess:
    """How to reach the jump host of `access`: its key and host keys are the node's, its user where none is named as well."""
    user, at, rest = (access.jump or "").rpartition("@")
    host, port = rest, str(SSH_PORT)
    if rest.startswith("["):
        host, closed, port = rest[1:].partition("]")
        port = (port.removeprefix(":") or str(SSH_PORT)) if closed else ""
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise Unreachable("JumpFailed", jump=access.jump, inner="NameNotResolved", host=access.jump)
    return SshAccess(host, int(port), user if at else access.user, None, access.identity, access.known_hosts)
