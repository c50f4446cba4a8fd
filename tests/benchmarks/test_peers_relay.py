"""The relay that stands for distance: it delays by what it says, keeps order and content, and counts what passed."""

from __future__ import annotations

import socket
import statistics
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.peers.meter import Distance

BIG = bytes(range(256)) * 8192  # 2 MiB: many reads of the relay


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets, until the other side has ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:  # closed: the test has ended
                    return
                threading.Thread(target=_mirror, args=(one,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[:2]
        server.shutdown(socket.SHUT_RDWR)


def _mirror(one: socket.socket) -> None:
    with one:
        while data := one.recv(1 << 16):
            one.sendall(data)


@pytest.fixture
def distance(echo: tuple[str, int]) -> Iterator[Distance]:
    with closing(Distance([echo])) as found:
        yield found


def _there_and_back(distance: Distance, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", distance.ports[0]), timeout=20) as s:
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        found = bytearray()
        while len(found) < len(data):
            found += s.recv(1 << 16)
    return bytes(found)


@pytest.mark.parametrize("delay", [0, 8])
def test_content_and_order_are_kept(distance: Distance, delay: int) -> None:
    distance.ask(f"delay {delay}")
    assert _there_and_back(distance, BIG) == BIG
    counts = distance.ask("counts")
    assert (counts["sent"], counts["received"], counts["connections"]) == (len(BIG), len(BIG), 1)


def test_each_question_after_an_answer_is_a_turn(distance: Distance) -> None:
    with socket.create_connection(("127.0.0.1", distance.ports[0]), timeout=20) as s:
        for _ in range(7):
            s.sendall(b"?")
            assert s.recv(1) == b"?"
    assert distance.ask("counts")["turns"] == 6  # the first question follows no answer


@pytest.mark.parametrize("delay", [0, 40])
def test_a_round_trip_takes_what_was_said(distance: Distance, delay: int) -> None:
    distance.ask(f"delay {delay}")
    fastest, middle = min(distance.round_trips(10)), statistics.median(distance.round_trips(10))
    assert fastest >= delay
    assert delay or middle < 40  # without a delay the relay adds little, also on a busy machine


def test_who_is_behind_the_relay_may_be_gone(distance: Distance) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = server.getsockname()[:2]
    with closing(Distance([gone])) as found, socket.create_connection(("127.0.0.1", found.ports[0]), timeout=20) as s:
        assert s.recv(1) == b""


def test_the_end_of_either_side_reaches_the_other(distance: Distance) -> None:
    distance.ask("delay 10")
    with socket.create_connection(("127.0.0.1", distance.ports[0]), timeout=20) as s:
        s.sendall(b"last")
        assert s.recv(4) == b"last"
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""
