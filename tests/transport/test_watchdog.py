"""Deadlines on one thread: the right ones fire, the others never, and the thread ends."""

from __future__ import annotations

import threading
import time

from reconciler.transport.watchdog import Watchdog


def test_what_is_left_in_time_never_fires() -> None:
    dog, fired = Watchdog(), threading.Event()
    with dog.after(0.05, fired.set) as alarm:
        pass
    with dog.after(0.2, threading.Event().set) as later:
        assert not fired.wait(0.15)
    assert not alarm.fired
    assert not later.fired
    dog.close()


def test_what_blocks_is_ended() -> None:
    dog, ended = Watchdog(), threading.Event()
    began = time.monotonic()
    with dog.after(0.05, ended.set) as alarm:
        assert ended.wait(5)
    assert alarm.fired
    assert time.monotonic() - began < 2
    dog.close()


def test_a_nearer_deadline_overtakes_a_farther_one() -> None:
    dog = Watchdog()
    near, far = threading.Event(), threading.Event()
    with dog.after(5, far.set), dog.after(0.05, near.set):
        assert near.wait(3)
        assert not far.is_set()
    dog.close()


def test_a_deadline_that_has_passed_fires_at_once() -> None:
    dog, ended = Watchdog(), threading.Event()
    with dog.after(-1, ended.set):
        assert ended.wait(5)
    dog.close()


def test_hundreds_at_once() -> None:
    dog, ended = Watchdog(), [threading.Event() for _ in range(200)]

    def block(event: threading.Event, even: bool) -> None:
        with dog.after(0.05 if even else 60, event.set):
            if even:
                event.wait(5)

    threads = [threading.Thread(target=block, args=(event, i % 2 == 0)) for i, event in enumerate(ended)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.is_set() for event in ended] == [True, False] * 100
    dog.close()


def test_the_thread_ends_with_it_and_comes_only_when_needed() -> None:
    before = set(threading.enumerate())  # of which some may end meanwhile: of earlier tests
    dog = Watchdog()
    assert not set(threading.enumerate()) - before
    with dog.after(60, lambda: None):
        assert len(set(threading.enumerate()) - before) == 1
    dog.close()
    dog.close()
    assert not set(threading.enumerate()) - before
