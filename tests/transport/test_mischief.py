"""Peers that hang, lie, flood and die: each has its error code, in time, and the channel knows that it is over."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.errors import Garbled, NodeRefused, ReconcileError, Unreachable
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.transport.base import Channel
from reconciler.transport.ssh import SshTransport
from tests.transport import servers
from tests.transport.conftest import Start
from tests.transport.servers import Sshd, fake, stopped
from tests.transport.test_ssh import ECHO, refusal, says_hi

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

Script = Callable[[str], str]
HELLO = 'RECONCILE-NODE {"protocol":1,"boot_id":"b","hostname":"h","python":"3","uid":0}'


def failing(channel: Channel, op: str, deadline: float, **fields: Any) -> threading.Thread:
    """A thread whose request has to end as Unreachable; otherwise pytest reports the thread's exception."""

    def ask() -> None:
        with pytest.raises(Unreachable):
            channel.request(op, deadline, **fields)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


def node_at(port: int) -> DesiredNode:
    return DesiredNode("fake", SshAccess("127.0.0.1", port), ())


def hang(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def hang_after_version(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    hang(connection)


def speak_http(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n<html>what?</html>\r\n")


def speak_binary(connection: socket.socket) -> None:
    connection.sendall(b"\xff\xfe\x00\x80" * 10 + b"\n")


def flood(connection: socket.socket) -> None:
    for _ in range(400):
        connection.sendall(b"x" * (1 << 16))


def flood_after_version(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    flood(connection)


def too_busy(connection: socket.socket) -> None:
    connection.sendall(b"Exceeded MaxStartups\r\n")


def hang_up(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("serve", [hang, hang_after_version])
def test_a_server_that_hangs(transport: SshTransport, serve: Callable[[socket.socket], None]) -> None:
    began = time.monotonic()
    with fake(serve) as port, pytest.raises(Unreachable) as caught:
        transport.open(node_at(port), 1.0)
    assert (caught.value.reason, caught.value.data["stage"]) == ("DeadlinePassed", "login")
    assert 0.9 < time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("serve", "kind", "reason", "detail"),
    [
        (speak_http, Garbled, "NotTheProgram", "HTTP/1.1 400"),
        (speak_binary, Garbled, "NotTheProgram", "�"),
        (flood, Garbled, "NotTheProgram", "xxxx"),
        (flood_after_version, Unreachable, "ConnectionLost", ""),
        (hang_up, Unreachable, "ConnectionLost", ""),
        (too_busy, Unreachable, "ConnectionRefused", "MaxStartups"),
    ],
)
def test_a_server_that_does_not_speak_ssh(
    transport: SshTransport,
    capfd: pytest.CaptureFixture[str],
    serve: Callable[[socket.socket], None],
    kind: type[ReconcileError],
    reason: str,
    detail: str,
) -> None:
    began = time.monotonic()
    with fake(serve) as port, pytest.raises(ReconcileError) as caught:
        transport.open(node_at(port), 20)
    assert (type(caught.value), caught.value.reason) == (kind, reason)
    assert detail in caught.value.data.get("detail", "")
    assert len(caught.value.data.get("detail", "")) <= 200
    assert time.monotonic() - began < 10
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "kind", "reason", "detail"),
    [
        ("echo no program here; exit 0", Garbled, "ProgramEnded", "no program here"),
        ("echo Traceback >&2; exit 1", Garbled, "ProgramEnded", "Traceback"),
        ("yes 'some line of junk'", Garbled, "NotTheProgram", "some line of junk"),
        ("head -c 10000000 /dev/zero | tr '\\0' x; cat >/dev/null", Garbled, "NotTheProgram", "xxxx"),
        ("echo 'RECONCILE-NODE {\"protocol\":2}'; cat >/dev/null", Garbled, "WrongShape", "protocol 2"),
        ("echo 'RECONCILE-NODE {\"protocol\":1}'; cat >/dev/null", Garbled, "NotJson", "KeyError"),
        ("echo 'RECONCILE-NODE []'; cat >/dev/null", Garbled, "NotJson", "TypeError"),
        ("echo 'RECONCILE-NODE {'; cat >/dev/null", Garbled, "NotJson", "JSONDecodeError"),
        ("kill -9 $$", Unreachable, "ConnectionLost", ""),
        ("head -c 10000000 /dev/zero >&2; echo the end >&2; exit 3", Garbled, "ProgramEnded", "the end"),
    ],
)
def test_what_is_not_the_program(
    transport: SshTransport, start: Start, script: Script, body: str, kind: type[ReconcileError], reason: str, detail: str
) -> None:
    with start(ForceCommand=script(body + "\n")) as server:
        error = refusal(transport, server)
    assert (type(error), error.reason) == (kind, reason)
    assert detail in error.data.get("detail", "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("read x; head -c 10000000 /dev/zero | tr '\\0' x", "AnswerTooLong"),
        ("read x; echo junk", "NotJson"),
        ("read x; echo '[\"id\", 1]'", "WrongShape"),
        ("read x; echo '{\"id\": 1}'", "WrongShape"),
        ('read x; echo \'{"id": "1", "ok": {}}\'', "WrongShape"),
        ('read x; echo \'{"id": 7, "ok": {}}\'', "WrongShape"),
        ('read x; echo \'{"id": 1, "z": "AAAA"}\'', "NotJson"),
        ('read x; echo \'{"id": 1, "z": 5}\'', "NotJson"),
        ('read x; echo \'{"id": 1, "z": "%"}\'', "NotJson"),
    ],
)
def test_garbage_after_the_hello_ends_the_channel_for_all(
    transport: SshTransport, start: Start, script: Script, body: str, reason: str
) -> None:
    # the preamble is a line with its length, then that many bytes
    take = f"read n; head -c $n >/dev/null; echo '{HELLO}'; {body}; cat >/dev/null\n"
    failures: list[ReconcileError] = []

    def ask() -> None:
        try:
            channel.request("probe", 20, facts={})
        except ReconcileError as e:
            failures.append(e)

    with start(ForceCommand=script(take)) as server:
        channel = transport.open(server.node(), 20)
        askers = [threading.Thread(target=ask) for _ in range(5)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        channel.close()
    assert {(type(e), e.reason) for e in failures} == {(Garbled, reason)}
    assert len(failures) == 5


def test_a_refusal_cannot_name_what_is_ours(transport: SshTransport, start: Start, script: Script) -> None:
    answer = '{"id": 1, "refused": "LeaseHeld", "data": {"reason": "x", "self": "y", "holder": "z"}}'
    take = f"read n; head -c $n >/dev/null; echo '{HELLO}'; read x; echo '{answer}'; cat >/dev/null\n"
    with start(ForceCommand=script(take)) as server:
        channel = transport.open(server.node(), 20)
        with pytest.raises(NodeRefused) as caught:
            channel.request("lease", 20)
        channel.close()
    assert (caught.value.reason, caught.value.data) == ("LeaseHeld", {"holder": "z"})


def test_noise_before_the_hello_is_skipped(transport: SshTransport, start: Start, script: Script) -> None:
    noise = "i=0; while [ $i -lt 500 ]; do echo 'Welcome, this host is watched {}'; i=$((i+1)); done; printf 'no newline> '\n"
    with start(ForceCommand=script(noise + 'eval "$SSH_ORIGINAL_COMMAND"\n')) as server:
        channel = transport.open(server.node(), 20)
        assert says_hi(channel)
        channel.close()


def test_a_node_that_stands_still_costs_the_deadline_and_no_more(transport: SshTransport, start: Start) -> None:
    with start() as server:
        channel = transport.open(server.node(), 20)
        with stopped(server.sessions()):
            began = time.monotonic()
            with pytest.raises(Unreachable) as caught:
                channel.request("probe", 0.5, facts=ECHO)
            assert 0.4 < time.monotonic() - began < 3
        assert (caught.value.reason, caught.value.data["op"]) == ("DeadlinePassed", "probe")
        assert says_hi(channel)  # the late answer came first and was dropped
        channel.close()


def test_a_write_that_cannot_end_is_cut_off(transport: SshTransport, start: Start) -> None:
    with start() as server:
        channel = transport.open(server.node(), 20)
        with stopped(server.sessions()), pytest.raises(Unreachable) as caught:
            channel.request("begin", 1.0, content="x" * (15 << 20))
        assert caught.value.reason == "DeadlinePassed"
        with pytest.raises(Unreachable) as later:
            says_hi(channel)
        assert (later.value.reason, later.value.data["after"]) == ("ConnectionLost", "DeadlinePassed")
        channel.close()


def test_who_waits_for_another_write_has_his_own_deadline(transport: SshTransport, start: Start) -> None:
    with start() as server:
        channel = transport.open(server.node(), 20)
        with stopped(server.sessions()):
            big = failing(channel, "begin", 3.0, c="x" * (15 << 20))
            began = time.monotonic()
            with pytest.raises(Unreachable, match="DeadlinePassed"):
                channel.request("probe", 0.5, facts={})
            assert time.monotonic() - began < 2
            big.join()
        channel.close()


def test_a_lost_connection_reaches_who_waits(transport: SshTransport, start: Start) -> None:
    with start() as server:
        channel = transport.open(server.node(), 20)
        facts = {"s": [{"do": "run", "argv": ["sleep", "60"], "deadline": 60}]}
        waiting = failing(channel, "probe", 60, facts=facts)
        servers.kill(server.sessions())
        waiting.join(10)
        assert not waiting.is_alive()
        channel.close()


def test_an_exec_that_is_never_answered(transport: SshTransport, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with start() as server:
        opened = transport._login(server.access(), time.monotonic() + 20)
        monkeypatch.setattr(transport, "_login", lambda access, until: opened)
        with stopped(server.sessions()):
            error = refusal(transport, server, deadline=0.5)
    assert (error.reason, error.data["stage"]) == ("DeadlinePassed", "session")


def test_a_firewalled_port_times_out(transport: SshTransport, server: Sshd) -> None:
    """A listener whose queue is full drops what comes: no answer at all, as behind a firewall."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        filling = [socket.socket() for _ in range(4)]
        for s in filling:
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", port))
        error = refusal(transport, server, deadline=1.0, port=port)
        for s in filling:
            s.close()
    assert error.reason == "ConnectTimedOut"


def test_no_route(transport: SshTransport, server: Sshd) -> None:
    """Linux opens no stream to the broadcast address; a network that is down has the same code."""
    assert refusal(transport, server, host="255.255.255.255").reason == "NoRoute"
