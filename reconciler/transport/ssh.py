"""Nodes over SSH: fabric opens and authenticates, one channel stays open. The only importer of fabric."""

from __future__ import annotations

import contextlib
import shlex
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.errors import ReconcileError, Unreachable
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.transport import program
from reconciler.transport.channel import ProgramChannel
from reconciler.transport.connect import connect
from reconciler.transport.hostkeys import HostKey, KnownHosts
from reconciler.transport.jump import Jump, jump_access
from reconciler.transport.once import once
from reconciler.transport.watchdog import Watchdog

if TYPE_CHECKING:
    import paramiko

    from reconciler.transport.link import Wire

BLOCK = 1 << 16
SUDO = ("sudo", "-n", "--")
_MAKING = (
    threading.Lock()
)  # a connection that is made sets a value of the shared configuration, which is then merged anew from nothing


@contextlib.contextmanager
def _without_mock() -> Iterator[None]:
    """An import of `unittest.mock` finds a stand-in, where the real one is not loaded already.

    invoke, which fabric rests on, imports it for a class that only tests use. It brings unittest and asyncio: some 40 modules, a
    tenth of the controller's CPU of a plan without changes.
    """
    name = "unittest.mock"
    stand_in = types.ModuleType(name)
    vars(stand_in)["Mock"] = object
    if sys.modules.setdefault(name, stand_in) is not stand_in:
        yield
        return
    try:
        yield
    finally:
        del sys.modules[name]


@once
def _fabric() -> tuple[Any, Any, Any]:
    """fabric, our part that needs paramiko, and one configuration. Late: together they take 0.4 s to import.

    The configuration is empty on purpose: nobody's ssh_config or fabric.yml changes where a node is or who it is.
    """
    with _without_mock():
        import fabric
    import paramiko

    from reconciler.transport import link

    link.silence()
    return fabric, link, fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig())


class SshConnection:
    """One authenticated connection."""

    def __init__(self, connection: Any, wire: Wire) -> None:
        self._connection, self.wire = connection, wire

    @property
    def transport(self) -> paramiko.Transport:
        transport: paramiko.Transport = self._connection.client.get_transport()
        return transport

    @property
    def alive(self) -> bool:
        transport = self._connection.client.get_transport()
        return bool(transport and transport.is_active())

    @property
    def received(self) -> int:
        return self.wire.received

    def host_key(self) -> HostKey:
        key = self.transport.get_remote_server_key()
        return HostKey(key.get_name(), key.asbytes())

    def abort(self) -> None:
        """Cut the wire: every thread that stands in it gets out. Never raises, never blocks."""
        with contextlib.suppress(OSError, EOFError):
            self.wire.close()

    def close(self) -> None:
        """Also ends paramiko's thread and its connection to the agent. fabric's own close skips what did not log in."""
        self.abort()
        transport = self._connection.client.get_transport()
        with contextlib.suppress(OSError, EOFError):
            self._connection.client.close()
        if transport and transport.is_alive() and transport is not threading.current_thread():
            transport.join(1.0)


class SshStream:
    """The node program's standard streams over one session channel."""

    def __init__(self, connection: SshConnection, channel: paramiko.Channel) -> None:
        self._connection, self._channel = connection, channel

    @property
    def received(self) -> int:
        return self._connection.received

    def read(self) -> bytes:
        return self._until_lost(self._channel.recv)

    def read_error(self) -> bytes:
        return self._until_lost(self._channel.recv_stderr)

    def _until_lost(self, receive: Callable[[int], bytes]) -> bytes:
        """Receiving also sends (the window opens again), so that it fails like a write where the link is gone."""
        try:
            return receive(BLOCK)
        except Exception:  # noqa: BLE001 of any class, as below; the end is all that there is to say
            self.abort()
            return b""

    def write(self, data: bytes) -> None:
        try:
            self._channel.sendall(data)
        except Exception as e:  # paramiko passes on what its thread met, of any class
            raise OSError("the connection is lost") from e

    def status(self, seconds: float) -> int | None:
        self._channel.status_event.wait(seconds)
        return self._channel.exit_status if self._channel.exit_status >= 0 else None

    def abort(self) -> None:
        self._connection.abort()

    def close(self) -> None:
        self._connection.close()


class SshTransport:
    """Opens channels to nodes over SSH. Used by many threads at once, one node each."""

    def __init__(self, python: str = "python3") -> None:
        self._python = python
        self._watchdog = Watchdog()
        self._lock = threading.Lock()
        self._jumps: dict[tuple[str, int, str, str | None], Jump] = {}
        self._identities: dict[tuple[str, int], paramiko.PKey] = {}

    def open(self, node: DesiredNode, deadline: float) -> ProgramChannel:
        """As the protocol says. Accepted are only the host keys in the node's `known_hosts`, and nothing is ever added."""
        until = time.monotonic() + deadline
        access = node.access
        if access.jump is None:
            return self._start(access, until, self._login(access, until))
        jump = self._jump(access)
        if not jump.handshakes.acquire(timeout=deadline):
            raise Unreachable("DeadlinePassed", stage="jump", jump=access.jump, deadline=deadline)
        try:
            return self._start(access, until, self._login_behind(jump, access, until))
        finally:
            jump.handshakes.release()

    def _start(self, access: SshAccess, until: float, connection: SshConnection) -> ProgramChannel:
        become = access.user != "root"
        argv = (*(SUDO if become else ()), *program.argv(self._python))
        _, link, _ = _fabric()
        where = {"host": access.host, "port": access.port}
        try:
            # exec_command waits for its answer without an end
            with self._watchdog.after(until - time.monotonic(), connection.abort):
                session = connection.transport.open_session(timeout=max(0.1, until - time.monotonic()))
                session.exec_command(shlex.join(argv))
        except Exception as e:  # noqa: BLE001 paramiko passes on what its thread met, of any class
            transport = connection.transport
            connection.close()
            if time.monotonic() >= until:
                raise Unreachable("DeadlinePassed", **where, stage="session") from None
            raise link.explain(e, connection.wire, transport, where) from None
        return ProgramChannel(SshStream(connection, session), self._watchdog, max(0.0, until - time.monotonic()), become)

    def _login(self, access: SshAccess, until: float) -> SshConnection:
        self._identity(access)  # before anything is sent: a key that cannot be read is no reason to knock
        return self._secure(access, until, connect(access.host, access.port, until - time.monotonic()))

    def _login_behind(self, jump: Jump, access: SshAccess, until: float) -> SshConnection:
        """Through the shared connection of `jump`. What fails there is JumpFailed; what the node itself refuses is not."""
        try:
            gateway = jump.connection(jump_access(access), until, self._login)
            # the watchdog must not end what other nodes use: this call has a timeout of its own
            inner = gateway.transport.open_channel(
                "direct-tcpip", (access.host, access.port), ("", 0), timeout=max(0.1, until - time.monotonic())
            )
        except ReconcileError as e:
            raise Unreachable("JumpFailed", **{**e.data, "jump": access.jump, "inner": e.reason}) from None
        except Exception as e:  # noqa: BLE001 as above
            _, link, _ = _fabric()
            raise link.explain_jump(e, access.jump, access.host, access.port, time.monotonic() >= until) from None
        return self._secure(access, until, inner)

    def _secure(self, access: SshAccess, until: float, sock: Any) -> SshConnection:
        """Handshake, host key, login over `sock`, which is closed where that fails."""
        fabric, link, config = _fabric()
        wire = link.Wire(sock)
        known = KnownHosts(access.known_hosts)
        remaining = max(0.1, until - time.monotonic())
        options = {
            "sock": wire,
            "pkey": self._identity(access),
            "allow_agent": access.identity is None,
            "look_for_keys": access.identity is None,
            "transport_factory": link.Factory(known.types(access.host, access.port)),
            # its own limits of 15 and 30 s are neither ours nor one deadline: the watchdog keeps that
            **dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), remaining),
        }
        with _MAKING:
            connection = fabric.Connection(
                access.host, user=access.user, port=access.port, config=config, gateway=False, connect_kwargs=options
            )
        connection.client.set_missing_host_key_policy(link.Policy(known, access.host, access.port))
        opened = SshConnection(connection, wire)
        where = {"host": access.host, "port": access.port, "user": access.user}
        try:
            with self._watchdog.after(until - time.monotonic(), opened.abort) as alarm:
                connection.open()
        except Exception as e:  # noqa: BLE001 paramiko passes on what its thread met, of any class
            transport = connection.client.get_transport()
            opened.close()
            if alarm.fired or time.monotonic() >= until:
                raise Unreachable("DeadlinePassed", **where, stage="login") from None
            raise link.explain(e, wire, transport, where) from None
        opened.transport.set_keepalive(link.KEEPALIVE)
        return opened

    def _identity(self, access: SshAccess) -> paramiko.PKey | None:
        """The node's key, parsed once for as long as its file stays the same."""
        if access.identity is None:
            return None
        _, link, _ = _fabric()
        with contextlib.suppress(OSError):  # link.identity says what is wrong with it
            stamp = (access.identity, Path(access.identity).expanduser().stat().st_mtime_ns)
            with self._lock:
                if stamp not in self._identities:
                    self._identities[stamp] = link.identity(access.identity)
                return self._identities[stamp]
        key: paramiko.PKey = link.identity(access.identity)
        return key

    def _jump(self, access: SshAccess) -> Jump:
        through = jump_access(access)
        with self._lock:
            return self._jumps.setdefault((through.host, through.port, through.user, through.identity), Jump())

    def close(self) -> None:
        """End the jump hosts' connections, and with them every channel behind. Never raises."""
        with self._lock:
            jumps, self._jumps = list(self._jumps.values()), {}
        for jump in jumps:
            jump.close()
        self._watchdog.close()
