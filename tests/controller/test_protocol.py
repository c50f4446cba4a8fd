"""The controller's socket: what is refused, what is too long, and what a client is told of a server that goes away."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller import protocol
from reconciler.controller.protocol import LIMIT, Refusal, Request, ask, encode, parse_request, read_request
from reconciler.errors import ControllerError

PUSH = {"repository": "/srv/site.git", "ref": "refs/heads/main", "old": "0" * 40, "new": "1" * 40}
REQUESTS: list[tuple[str, dict[str, Any] | bytes, Request | str]] = [
    ("the least push", {"v": 1, "op": "push", **PUSH}, Request("push", PUSH)),
    ("status", {"v": 1, "op": "status"}, Request("status")),
    ("nothing for a field that may be left out", {"v": 1, "op": "wake", "reason": None}, Request("wake", {"reason": None})),
    ("no JSON", b"hello", "NotJson"),
    ("a list", b"[1]", "NotJson"),
    ("very deep", b"[" * 100_000, "NotJson"),
    ("not text", b"\xff\xfe\x00", "NotJson"),
    ("no version", {"op": "status"}, "UnknownVersion"),
    ("a newer version", {"v": 2, "op": "status"}, "UnknownVersion"),
    ("no op", {"v": 1}, "UnknownOp"),
    ("an op that is a list", {"v": 1, "op": ["status"]}, "UnknownOp"),
    ("a wrong op", {"v": 1, "op": "statis"}, "UnknownOp"),
    ("a field too many", {"v": 1, "op": "status", "now": 1}, "WrongField"),
    ("a field missing", {"v": 1, "op": "follow"}, "WrongField"),
    ("a wrong type", {"v": 1, "op": "follow", "id": 7}, "WrongField"),
    ("a truth for a number", {"v": 1, "op": "events", "since": True}, "WrongField"),
    ("a list of no names", {"v": 1, "op": "resume", "scope": [1]}, "WrongField"),
]


@pytest.mark.parametrize(("sent", "expected"), [case[1:] for case in REQUESTS], ids=[case[0] for case in REQUESTS])
def test_a_request_is_understood_or_refused_by_a_code(sent: dict[str, Any] | bytes, expected: Request | str) -> None:
    found = parse_request(sent if isinstance(sent, bytes) else json.dumps(sent).encode())
    assert (found.reason if isinstance(found, Refusal) else found) == expected


def test_a_wrong_op_is_answered_with_the_nearest() -> None:
    found = parse_request(b'{"v":1,"op":"statis"}')
    assert isinstance(found, Refusal)
    assert found.data["nearest"] == "status"


def test_an_event_too_long_is_replaced_by_its_size() -> None:
    line = encode({"event": {"event": "planned", "nodes": "x" * LIMIT}})
    assert json.loads(line)["event"]["event"] == "planned"
    assert json.loads(line)["event"]["omitted"] > LIMIT
    ended = json.loads(encode(protocol.end(0, "", text="x" * LIMIT)))["end"]
    assert (ended["exit"], ended["reason"], ended["data"]["limit"]) == (1, "LineTooLong", LIMIT)


def serve(path: Path, answer: Callable[[socket.socket], None]) -> threading.Thread:
    """One connection, answered by `answer`."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def work() -> None:
        with listening, listening.accept()[0] as connection:
            answer(connection)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


ANSWERS: list[tuple[str, bytes, list[str], str | None]] = [
    ("events and an end", encode(protocol.event({"event": "a"})) + encode(protocol.end(3, "X")), ["event", "end"], None),
    ("words after the end", encode(protocol.end(0)) + b"more\n", ["end"], None),
    ("no end", encode(protocol.event({"event": "a"})), ["event"], "ControllerLost"),
    ("nothing", b"", [], "ControllerLost"),
    ("half a line", b'{"end":', [], "ControllerLost"),
    ("another program", b"220 smtp ready\n", [], "ControllerGarbled"),
    ("a line without end", b"x" * (LIMIT + 70_000), [], "LineTooLong"),
]


@pytest.mark.parametrize(("said", "kinds", "reason"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_a_client_reads_messages_up_to_the_end(tmp_path: Path, said: bytes, kinds: list[str], reason: str | None) -> None:
    def answer(connection: socket.socket) -> None:
        assert read_request(connection) == Request("status")
        try:
            connection.sendall(said)
        except BrokenPipeError:
            assert reason == "LineTooLong"  # the client has heard enough

    thread = serve(tmp_path / "s", answer)
    found: list[str] = []
    with pytest.raises(ControllerError, match=reason) if reason else contextlib.nullcontext():
        for message in ask(tmp_path / "s", {"op": "status"}):
            found += message
    thread.join(10)
    assert found == kinds


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match="NoController"):
        next(ask(tmp_path / "none", {"op": "status"}))
    (tmp_path / "file").touch()
    with pytest.raises(ControllerError, match="NoController"):
        next(ask(tmp_path / "file", {"op": "status"}))


def test_a_client_that_leaves_or_sends_too_much_is_no_request() -> None:
    here, there = socket.socketpair()
    with here:
        there.close()
        assert read_request(here) is None
    here, there = socket.socketpair()
    with here:
        thread = threading.Thread(target=lambda: there.sendall(b"x" * (LIMIT + 70_000)))
        thread.start()
        found = read_request(here)
        thread.join(10)
        there.close()
    assert isinstance(found, Refusal)
    assert found.reason == "LineTooLong"
