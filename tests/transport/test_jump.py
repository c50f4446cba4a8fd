"""Nodes behind a jump host: one login there for all of them, the same host key rules, and its failures told apart."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from invoke.config import Config

from reconciler.errors import ReconcileError, Unreachable
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.transport.jump import HANDSHAKES, jump_access
from reconciler.transport.ssh import SshConnection, SshTransport
from tests.transport import servers
from tests.transport.conftest import Start
from tests.transport.servers import Sshd, stopped
from tests.transport.test_ssh import refusal, says_hi

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def bastion(start: Start) -> Iterator[Sshd]:
    with start(PermitTTY="no") as running:
        yield running


def behind(server: Sshd, bastion: Sshd, **changes: object) -> DesiredNode:
    access = server.access(jump=f"root@127.0.0.1:{bastion.port}", known_hosts=(server.line(), bastion.line()))
    return DesiredNode("node", dataclasses.replace(access, **changes), ())  # type: ignore[arg-type]


def failed(transport: SshTransport, node: DesiredNode, deadline: float = 20) -> ReconcileError:
    with pytest.raises(ReconcileError) as caught:
        transport.open(node, deadline)
    return caught.value


def test_many_nodes_share_one_login(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    with ThreadPoolExecutor(20) as pool:
        channels = list(pool.map(lambda _: transport.open(behind(server, bastion), 20), range(20)))
        assert all(pool.map(says_hi, channels))
    assert bastion.logged("Accepted publickey") == 1
    channels[0].close()
    assert says_hi(channels[1])
    for channel in channels:
        channel.close()


def test_handshakes_behind_it_are_paced(
    transport: SshTransport, server: Sshd, bastion: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most, guard = 0, 0, threading.Lock()
    secure = transport._secure

    def counted(access: SshAccess, until: float, sock: object) -> SshConnection:
        nonlocal now, most
        with guard:
            now += access.jump is not None
            most = max(most, now)
        try:
            return secure(access, until, sock)
        finally:
            with guard:
                now -= access.jump is not None

    monkeypatch.setattr(transport, "_secure", counted)
    with ThreadPoolExecutor(24) as pool:
        for channel in list(pool.map(lambda _: transport.open(behind(server, bastion), 30), range(24))):
            channel.close()
    assert 1 < most <= HANDSHAKES


def test_no_connection_is_made_while_the_shared_configuration_is_merged_anew(
    transport: SshTransport, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport.open(server.node(), 20).close()  # fabric and its configuration are there
    merge, two = Config.merge, threading.Barrier(2)

    def met(config: Config) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            two.wait(0.5)
            raise AssertionError("two at once")
        two.reset()
        merge(config)

    monkeypatch.setattr(Config, "merge", met)
    with ThreadPoolExecutor(2) as pool:
        for channel in list(pool.map(lambda _: transport.open(server.node(), 20), range(2))):
            assert says_hi(channel)
            channel.close()


def test_a_new_login_after_the_shared_one_was_lost(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    first = transport.open(behind(server, bastion), 20)
    servers.kill(bastion.sessions())
    with pytest.raises(Unreachable, match="ConnectionLost"):
        says_hi(first)
    first.close()
    second = transport.open(behind(server, bastion), 20)
    assert says_hi(second)
    second.close()


def test_host_keys_of_both_are_checked(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    error = failed(transport, behind(server, bastion, known_hosts=(server.line(),)))
    assert (error.reason, error.data["inner"], error.data["port"]) == ("JumpFailed", "HostKeyUnknown", bastion.port)
    assert error.data["fingerprint"] == servers.fingerprint(bastion.keys["ed25519"].with_suffix(".pub"))
    error = failed(transport, behind(server, bastion, known_hosts=(bastion.line(),)))
    assert (error.reason, error.data["port"]) == ("HostKeyUnknown", server.port)


def test_a_shared_login_is_not_a_way_around_ones_own_known_hosts(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    channel = transport.open(behind(server, bastion), 20)
    error = failed(transport, behind(server, bastion, known_hosts=(server.line(),)))
    assert (error.reason, error.data["inner"]) == ("JumpFailed", "HostKeyUnknown")
    assert says_hi(channel)
    channel.close()


def test_one_failure_serves_all_who_wait(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    node = behind(server, bastion, jump=f"127.0.0.1:{servers.free_port()}")
    with ThreadPoolExecutor(8) as pool:
        errors = list(pool.map(lambda _: failed(transport, node), range(8)))
    assert {(e.reason, e.data["inner"]) for e in errors} == {("JumpFailed", "ConnectionRefused")}


def test_a_refused_user_at_the_jump_host(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    error = failed(transport, behind(server, bastion, jump=f"nobody-here@127.0.0.1:{bastion.port}"))
    assert (error.reason, error.data["inner"]) == ("JumpFailed", "AuthenticationRefused")


def test_the_node_is_down_behind_a_good_jump_host(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    port = servers.free_port()
    error = failed(transport, behind(server, bastion, port=port))
    assert (error.reason, error.data["port"], error.data["stage"]) == ("ConnectionRefused", port, "jump")


def test_a_jump_host_that_forwards_nothing(transport: SshTransport, server: Sshd, start: Start) -> None:
    with start(AllowTcpForwarding="no") as bastion:
        error = failed(transport, behind(server, bastion))
    assert (error.reason, error.data["inner"]) == ("JumpFailed", "ForwardingRefused")


def test_a_jump_host_that_stands_still(transport: SshTransport, server: Sshd, bastion: Sshd) -> None:
    channel = transport.open(behind(server, bastion), 20)
    with stopped(bastion.sessions()):
        began = time.monotonic()
        assert failed(transport, behind(server, bastion), 1.0).reason == "DeadlinePassed"
        assert time.monotonic() - began < 4
    assert says_hi(channel)
    channel.close()


def test_ipv6(transport: SshTransport, start: Start) -> None:
    with start(ListenAddress="::1") as server:
        line = server.line().replace("127.0.0.1", "::1")
        channel = transport.open(server.node(host="::1", known_hosts=(line,)), 20)
        assert says_hi(channel)
        channel.close()
        assert refusal(transport, server, host="::1").reason == "HostKeyUnknown"


@pytest.mark.parametrize(
    ("jump", "host", "port", "user"),
    [
        ("bastion", "bastion", 22, "admin"),
        ("ops@bastion.example.net", "bastion.example.net", 22, "ops"),
        ("ops@bastion:2222", "bastion", 2222, "ops"),
        ("[2001:db8::1]:2222", "2001:db8::1", 2222, "admin"),
        ("ops@[2001:db8::1]", "2001:db8::1", 22, "ops"),
        ("2001:db8::1", "2001:db8::1", 22, "admin"),
    ],
)
def test_how_a_jump_host_is_written(jump: str, host: str, port: int, user: str) -> None:
    through = jump_access(SshAccess("node", 22, "admin", jump, "key", ("line",)))
    assert through == SshAccess(host, port, user, None, "key", ("line",))


@pytest.mark.parametrize("jump", ["", "ops@", "host:", "host:ssh", "host:0", "host:65536", "[::1"])
def test_a_jump_host_that_is_none(jump: str) -> None:
    with pytest.raises(Unreachable, match="JumpFailed"):
        jump_access(SshAccess("node", jump=jump))
