"""Nodes over a real sshd: login, host keys, users, and what the node program says through it."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import Garbled, NodeRefused, ReconcileError, Unreachable
from reconciler.transport.base import Channel
from reconciler.transport.ssh import SshStream, SshTransport
from tests.transport import servers
from tests.transport.conftest import PLAIN, SUDOER, Start
from tests.transport.servers import Sshd

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

ECHO = {"h": [{"do": "run", "argv": ["echo", "hi"], "deadline": 5}]}


def says_hi(channel: Channel) -> bool:
    return bool(channel.request("probe", 20, facts=ECHO)["facts"]["h"][0]["out"] == "hi\n")


def refusal(transport: SshTransport, server: Sshd, deadline: float = 20, **changes: object) -> ReconcileError:
    with pytest.raises(ReconcileError) as caught:
        transport.open(server.node(**changes), deadline)
    return caught.value


def test_right_key_opens_and_answers(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(), 20)
    assert channel.hello.uid == 0
    assert channel.hello.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    before = channel.received
    assert says_hi(channel)
    assert channel.received > before > 1000
    channel.close()
    with pytest.raises(Unreachable, match="ConnectionLost"):
        says_hi(channel)


@pytest.mark.parametrize("kind", servers.TYPES)
def test_the_known_key_type_is_the_one_that_is_asked_for(transport: SshTransport, server: Sshd, kind: str) -> None:
    channel = transport.open(server.node(known_hosts=(server.line(kind),)), 20)
    assert says_hi(channel)
    channel.close()


def test_unknown_host_key(transport: SshTransport, server: Sshd) -> None:
    error = refusal(transport, server, known_hosts=())
    assert (type(error), error.reason) == (Unreachable, "HostKeyUnknown")
    offered = {servers.fingerprint(path.with_suffix(".pub")) for path in server.keys.values()}
    assert error.data["fingerprint"] in offered
    assert error.data["port"] == server.port


def test_changed_host_key(transport: SshTransport, server: Sshd, tmp_path: Path) -> None:
    other = servers.keygen(tmp_path / "other").with_suffix(".pub")
    line = f"[127.0.0.1]:{server.port} " + other.read_text()
    error = refusal(transport, server, known_hosts=(line,))
    assert error.reason == "HostKeyChanged"
    assert error.data["fingerprint"] == servers.fingerprint(server.keys["ed25519"].with_suffix(".pub"))
    assert error.data["known"] == [servers.fingerprint(other)]


def test_revoked_host_key(transport: SshTransport, server: Sshd) -> None:
    error = refusal(transport, server, known_hosts=(server.line(), "@revoked " + server.line()))
    assert (error.reason, error.data["revoked"]) == ("HostKeyUnknown", True)


def test_hashed_known_hosts(transport: SshTransport, server: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(server.line() + "\n")
    subprocess.run(("ssh-keygen", "-q", "-H", "-f", str(known)), check=True, capture_output=True)
    assert "127.0.0.1" not in known.read_text()
    channel = transport.open(server.node(known_hosts=tuple(known.read_text().splitlines())), 20)
    assert says_hi(channel)
    channel.close()


def test_refused_user_and_key(transport: SshTransport, server: Sshd, tmp_path: Path) -> None:
    assert refusal(transport, server, user="nobody-here").reason == "AuthenticationRefused"
    assert refusal(transport, server, identity=str(servers.keygen(tmp_path / "key"))).reason == "AuthenticationRefused"


def test_only_the_given_identity_is_tried(
    transport: SshTransport, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_bytes(server.client_key.read_bytes())
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    channel = transport.open(server.node(identity=None), 20)
    assert says_hi(channel)
    channel.close()
    assert refusal(transport, server, identity=str(servers.keygen(tmp_path / "key"))).reason == "AuthenticationRefused"


def test_the_users_ssh_config_is_not_read(
    transport: SshTransport, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  HostName 192.0.2.1\n  User nobody\n  Port 1\n  ProxyCommand false\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    channel = transport.open(server.node(), 20)
    assert says_hi(channel)
    channel.close()


@pytest.mark.parametrize(
    ("make", "detail"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_text("no key\n"), "ValueError"),
        (lambda path: servers.keygen(path, passphrase="secret"), "encrypted"),
        (lambda path: servers.keygen(path, "rsa", passphrase="secret"), "encrypted"),
    ],
    ids=["missing", "directory", "garbage", "encrypted", "encrypted-rsa"],
)
def test_unreadable_identity(
    transport: SshTransport, server: Sshd, tmp_path: Path, make: Callable[[Path], Any], detail: str
) -> None:
    make(tmp_path / "key")
    error = refusal(transport, server, identity=str(tmp_path / "key"))
    assert (error.reason, error.data["detail"]) == ("IdentityUnreadable", detail)


def test_wrong_port(transport: SshTransport, server: Sshd) -> None:
    assert refusal(transport, server, port=servers.free_port()).reason == "ConnectionRefused"


def test_name_that_does_not_resolve(transport: SshTransport, server: Sshd) -> None:
    assert refusal(transport, server, host="no-such-host.invalid").reason == "NameNotResolved"


@pytest.mark.usefixtures("users")
def test_sudo_makes_a_user_root(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(user=SUDOER), 20)
    assert channel.hello.uid == 0
    channel.close()


@pytest.mark.usefixtures("users")
def test_a_user_without_sudo_is_refused_with_the_words_of_sudo(transport: SshTransport, server: Sshd) -> None:
    error = refusal(transport, server, user=PLAIN)
    assert error.reason == "BecomeRefused"
    assert "password is required" in error.data["detail"]


@pytest.mark.parametrize("user", ["root", SUDOER], ids=["root", "sudo"])
@pytest.mark.usefixtures("users")
def test_no_python(server: Sshd, user: str) -> None:
    transport = SshTransport(python="python3-is-not-here")
    with pytest.raises(Garbled) as caught:
        transport.open(server.node(user=user), 20)
    transport.close()
    assert caught.value.reason == "NoPython"
    assert "python3-is-not-here" in caught.value.data["detail"]


def test_no_session_is_granted(transport: SshTransport, start: Start) -> None:
    with start(MaxSessions="0") as server:
        error = refusal(transport, server)
    assert (error.reason, error.data["stage"]) == ("ConnectionRefused", "session")


def test_many_requests_at_once(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(), 20)

    def ask(number: int) -> str:
        part = {"do": "read", "path": f"/no/such/{number}", "limit": 10}
        return str(channel.request("probe", 60, facts={str(number): [part]})["facts"][str(number)][0]["error"])

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(ask, range(1000))) == ["missing"] * 1000
    channel.close()


def test_a_short_request_is_answered_while_others_write_much(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(), 20)
    content = base64.b64encode(os.urandom(7_500_000)).decode()
    seen: list[str] = []

    def push() -> None:
        with pytest.raises(NodeRefused) as caught:
            channel.request("begin", 60, token=0, step=1, action={"file": {"content": content}}, plan="p")
        seen.append(caught.value.reason)

    writers = [threading.Thread(target=push) for _ in range(3)]
    for writer in writers:
        writer.start()
    assert says_hi(channel)
    for writer in writers:
        writer.join()
    assert seen == ["StaleToken"] * 3
    channel.close()


def test_a_request_over_the_limit_is_not_sent(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(), 20)
    with pytest.raises(NodeRefused, match="RequestTooLong"):
        channel.request("begin", 20, content="x" * (17 << 20))
    assert says_hi(channel)
    channel.close()


def test_large_answers(transport: SshTransport, server: Sshd) -> None:
    channel = transport.open(server.node(), 20)
    part = {"do": "run", "argv": ["head", "-c", "2500000", "/dev/urandom"], "deadline": 20}
    answer = channel.request("probe", 60, facts={"r": [part]})["facts"]["r"][0]
    assert len(base64.b64decode(answer["out64"])) == 2_500_000
    channel.close()


def test_nothing_is_left_after_fifty_channels(server: Sshd) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    transport = SshTransport()
    transport.open(server.node(), 20).close()  # whatever is made once a process
    threads, fds = set(threading.enumerate()), descriptors()

    def left() -> bool:
        """Anything that was not there at the beginning; what an earlier test left may end meanwhile."""
        return bool(set(threading.enumerate()) - threads) or descriptors() > fds

    for _ in range(50):
        channel = transport.open(server.node(), 20)
        channel.close()
    assert not left()
    for _ in range(10):
        refusal(transport, server, known_hosts=())
        refusal(transport, server, user="nobody-here")
    assert not left()
    transport.close()
    assert set(threading.enumerate()) < threads
    transport.close()


def test_a_link_that_is_lost_while_receiving_is_an_end_and_no_traceback() -> None:
    """To receive is also to send, when the window opens again: paramiko then raises in the thread that reads."""

    class Lost:
        def recv(self, size: int) -> bytes:
            raise EOFError

        recv_stderr = sendall = recv

    class Link:
        aborted = 0

        def abort(self) -> None:
            self.aborted += 1

    link = Link()
    stream = SshStream(link, Lost())  # type: ignore[arg-type]
    assert (stream.read(), stream.read_error(), link.aborted) == (b"", b"", 2)
    with pytest.raises(OSError, match="lost"):
        stream.write(b"x")


def test_nothing_reaches_the_terminal(transport: SshTransport, start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    with start() as server:
        refusal(transport, server, known_hosts=())
        refusal(transport, server, user="nobody-here")
        channel = transport.open(server.node(), 20)
    with pytest.raises(Unreachable, match="ConnectionLost"):
        says_hi(channel)
    channel.close()
    assert capfd.readouterr() == ("", "")
