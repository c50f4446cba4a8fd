"""Lines for a reader who may stand still, or be gone."""

from __future__ import annotations

import os
import threading

from reconciler.commands.lines import Lines


def test_in_order_and_whole() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    for number in range(100):
        lines(f"line {number}")
    lines.close()
    os.close(writing)
    with os.fdopen(reading) as reader:
        assert reader.read().splitlines() == [f"line {number}" for number in range(100)]


def test_a_reader_who_stands_still_stops_nobody_and_is_told_what_was_left_out() -> None:
    reading, writing = os.pipe()
    lines, all_said = Lines(writing, most=10), threading.Event()
    text = "x" * 1000

    def say() -> None:
        for _ in range(500):  # far more than pipe and queue hold
            lines(text)
        all_said.set()

    threading.Thread(target=say, daemon=True).start()
    assert all_said.wait(20)

    def end() -> None:
        lines.close()
        os.close(writing)

    threading.Thread(target=end, daemon=True).start()
    with os.fdopen(reading) as reader:
        got = reader.read().splitlines()
    left = [int(line[1:].split()[0]) for line in got if "lines left out" in line]
    assert left
    assert len(got) - len(left) + sum(left) == 500
    assert {line for line in got if "lines left out" not in line} == {text}


def test_a_reader_who_is_gone() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    os.close(reading)
    for _ in range(100):
        lines("to nobody")
    lines.close()
    os.close(writing)
