"""Webhooks: who knows the secret wakes, and nobody else learns anything, holds anything or fills anything."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.controller import webhook
from reconciler.controller.webhook import MOST_BYTES, Webhook, genuine, secret_of
from reconciler.errors import Usage

SECRET = b"a secret of the tests"
BODY = b'{"ref": "refs/heads/main", "who": "\xc3\xa4"}'
DIGEST = hmac.new(SECRET, BODY, hashlib.sha256).hexdigest()
WRONG = hmac.new(b"another secret for it", BODY, hashlib.sha256).hexdigest()
GITHUB, GITEA, GITLAB = "X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token"
SENT: list[tuple[str, dict[str, str], bool]] = [
    ("GitHub", {GITHUB: f"sha256={DIGEST}"}, True),
    ("Gitea", {GITEA: DIGEST}, True),
    ("Gitea, as it sends both", {GITEA: DIGEST, GITHUB: f"sha256={DIGEST}"}, True),
    ("GitLab", {GITLAB: SECRET.decode()}, True),
    ("no signature", {}, False),
    ("only the old one of GitHub", {"X-Hub-Signature": hmac.new(SECRET, BODY, hashlib.sha1).hexdigest()}, False),
    ("another secret", {GITHUB: f"sha256={WRONG}"}, False),
    ("no algorithm", {GITHUB: DIGEST}, False),
    ("upper case", {GITHUB: f"sha256={DIGEST.upper()}"}, False),
    ("half of it", {GITEA: DIGEST[:32]}, False),
    ("empty", {GITEA: "", GITHUB: ""}, False),
    ("one right, one wrong", {GITEA: DIGEST, GITHUB: f"sha256={WRONG}"}, False),
    ("a wrong token", {GITLAB: SECRET.decode() + "x"}, False),
    ("a token that is not ASCII", {GITLAB: "ä" * 21}, False),
    ("the digest as a token", {GITLAB: DIGEST}, False),
]


@pytest.mark.parametrize(("headers", "expected"), [case[1:] for case in SENT], ids=[case[0] for case in SENT])
def test_who_knows_the_secret(headers: dict[str, str], expected: bool) -> None:
    assert genuine(headers, BODY, SECRET) is expected
    assert genuine(headers, BODY + b" ", SECRET) is (expected and GITLAB in headers)  # a token says nothing about the body


@pytest.fixture
def woken() -> list[float]:
    return []


@pytest.fixture
def listening(woken: list[float]) -> Iterator[Webhook]:
    found = Webhook(("127.0.0.1", 0), SECRET, lambda: woken.append(time.monotonic()), deadline=1.0)
    yield found
    found.close()


def talk(hook: Webhook, sent: bytes) -> bytes:
    """Everything that is answered until the connection is closed."""
    with socket.create_connection(("127.0.0.1", hook.port), timeout=30) as connection:
        connection.sendall(sent)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while piece := connection.recv(4096):
            answer += piece
    except ConnectionResetError:  # it closed with something of ours unread
        pass
    return answer


def request(*headers: str, body: bytes = BODY, first: str = "POST / HTTP/1.1") -> bytes:
    return "\r\n".join((first, "Host: x", *headers, "", "")).encode("latin-1") + body


LENGTH = f"Content-Length: {len(BODY)}"
GOOD = f"{GITHUB}: sha256={DIGEST}"
ANSWERS: list[tuple[str, bytes, int]] = [
    ("a good one", request(LENGTH, GOOD), 204),
    ("GitLab", request(LENGTH, f"{GITLAB}: {SECRET.decode()}"), 204),
    ("a wrong signature", request(LENGTH, f"{GITHUB}: sha256={WRONG}"), 403),
    ("the same header twice", request(LENGTH, GOOD, GOOD), 403),
    ("no signature", request(LENGTH), 403),
    ("no length", request(GOOD), 411),
    ("in chunks", request("Transfer-Encoding: chunked", LENGTH, GOOD), 411),
    ("two lengths", request(LENGTH, LENGTH, GOOD), 411),
    ("a length that is none", request("Content-Length: 1_0", GOOD), 400),
    ("a negative length", request("Content-Length: -1", GOOD), 400),
    ("1 GB", request(f"Content-Length: {1 << 30}", GOOD), 413),
    ("one byte too many", request(f"Content-Length: {MOST_BYTES + 1}", GOOD), 413),
    ("a length of 5000 digits", request("Content-Length: " + "9" * 5000, GOOD), 400),
    ("GET", request(GOOD, first="GET / HTTP/1.1", body=b""), 405),
    ("no HTTP", b"hello\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
    ("a line without an end", b"POST /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 400),
    ("a thousand headers", request(*(f"X-{n}: x" for n in range(1000)), LENGTH, GOOD), 400),
]


@pytest.mark.parametrize(("sent", "status"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_answers_are_bare(listening: Webhook, woken: list[float], sent: bytes, status: int) -> None:
    answer = talk(listening, sent)
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode(), answer
    assert rest == b""
    assert b"Python" not in head
    assert len(woken) == (1 if status == 204 else 0)


def test_one_that_is_sent_again_only_wakes_again(listening: Webhook, woken: list[float]) -> None:
    for _ in range(3):
        assert b" 204 " in talk(listening, request(LENGTH, GOOD))
    assert len(woken) == 3


def slow(hook: Webhook, sent: bytes) -> tuple[float, bytes]:
    """Send a byte every 50 ms for as long as it is listened to: the seconds, and the answer."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", hook.port), timeout=30) as connection:
        connection.settimeout(0.05)
        answer = b""
        while time.monotonic() - began < 30:
            try:
                connection.sendall(sent[:1] if len(sent) > 1 else b"x")
                sent = sent[1:] or b"x"
                answer = connection.recv(4096)
            except TimeoutError:
                continue
            except OSError:
                break
            break
    return time.monotonic() - began, answer


@pytest.mark.parametrize("sent", [b"POST / HTTP/1.1\r\nX-A: " + b"a" * 2000, b"x" * 2000], ids=["headers", "first line"])
def test_a_slow_client_is_left_at_its_deadline(listening: Webhook, woken: list[float], sent: bytes) -> None:
    seconds, answer = slow(listening, sent)
    assert seconds < 10
    assert answer == b""
    assert woken == []


def test_a_slow_body_too_and_a_short_one_is_wrong(listening: Webhook, woken: list[float]) -> None:
    with socket.create_connection(("127.0.0.1", listening.port), timeout=30) as connection:
        connection.sendall(request(LENGTH, GOOD, body=BODY[:5]))
        assert received(connection) == b""
    with socket.create_connection(("127.0.0.1", listening.port), timeout=30) as connection:
        connection.sendall(request(LENGTH, GOOD, body=BODY[:5]))
        connection.shutdown(socket.SHUT_WR)
        assert b" 403 " in received(connection)
    assert woken == []


def test_more_connections_than_are_served_are_closed_and_room_comes_back(woken: list[float]) -> None:
    hook = Webhook(("127.0.0.1", 0), SECRET, lambda: woken.append(time.monotonic()), deadline=60.0)
    held = [socket.create_connection(("127.0.0.1", hook.port), timeout=30) for _ in range(webhook.AT_ONCE)]
    assert wait_for(lambda: clients() == webhook.AT_ONCE)
    assert talk(hook, b"") == b""
    for connection in held:
        connection.close()
    assert wait_for(lambda: clients() == 0)
    assert b" 204 " in talk(hook, request(LENGTH, GOOD))
    hook.close()


def clients() -> int:
    """Connections that are served now."""
    return sum(1 for thread in threading.enumerate() if thread.name == webhook.CLIENT)


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


SECRETS: list[tuple[bytes, int, str]] = [
    (SECRET + b"\n", 0o600, ""),
    (SECRET, 0o400, ""),
    (SECRET, 0o640, "SecretOpen"),
    (SECRET, 0o604, "SecretOpen"),
    (b"short", 0o600, "SecretLength"),
    (b"\n", 0o600, "SecretLength"),
    (b"x" * 4097, 0o600, "SecretLength"),
]


@pytest.mark.parametrize(("content", "mode", "reason"), SECRETS)
def test_the_secret_is_a_file_of_its_own(tmp_path: Path, content: bytes, mode: int, reason: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    if reason:
        with pytest.raises(Usage, match=reason):
            secret_of(path)
    else:
        assert secret_of(path) == SECRET


def test_no_secret_and_no_port(tmp_path: Path, listening: Webhook) -> None:
    with pytest.raises(Usage, match="SecretUnreadable"):
        secret_of(tmp_path / "nowhere")
    for address in (("127.0.0.1", listening.port), ("127.0.0.1", 70_000), ("no.such.host.invalid", 1)):
        with pytest.raises(Usage, match="CannotListen"):
            Webhook(address, SECRET, lambda: None)
