"""Any text, and any damage to a sample, of the formats that describe hardware: one of the three answers, soon, never an error."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Unknown, Value

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
MINE = ("ibstat", "ibv-devinfo", "ip-link", "kernel-log", "lspci", "nvcc", "proc-driver-version", "rdma-link", "topo")
SOON = 10.0  # seconds of CPU: coverage traces every line, which makes this several times slower
NOISE = ("\x1b[4m", "\x1b[0m", "\r", "\r\n", "\ufffd", "\x00", "\t", " ", "\n", "\u2028", "9" * 5000, "{", "'", ":", "-", "N/A")


def samples(name: str) -> list[str]:
    return [path.read_bytes().decode("utf-8", "replace") for path in sorted((CORPUS / name).glob("*")) if path.suffix != ".yaml"]


@st.composite
def damaged(draw: st.DrawFn, name: str) -> str:
    """A sample with one to four of: cut, lines deleted, doubled or swapped, a character changed, noise put in."""
    text = draw(st.sampled_from(samples(name)))
    for _ in range(draw(st.integers(1, 4))):
        lines, at = text.split("\n"), draw(st.integers(0, max(len(text) - 1, 0)))
        first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match draw(st.sampled_from(("cut", "delete", "double", "swap", "flip", "noise", "columns"))):
            case "cut":
                text = text[:at]
            case "delete":
                text = "\n".join(lines[:first] + lines[first + 1 :])
            case "double":
                text = "\n".join(lines[: first + 1] + lines[second:])
            case "swap":
                lines[first], lines[second] = lines[second], lines[first]
                text = "\n".join(lines)
            case "flip":
                text = text[:at] + draw(st.characters()) + text[at + 1 :]
            case "noise":
                text = text[:at] + draw(st.sampled_from(NOISE)) + text[at:]
            case "columns":
                text = "\n".join(line[: at % 80] for line in lines)
    return text


def check(name: str, text: str) -> None:
    start = time.process_time()
    answer = FORMATS[name](text)
    assert isinstance(answer, Value | Absent | Unknown)
    plain(answer)
    assert time.process_time() - start < SOON


@pytest.mark.parametrize("name", MINE)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_samples(name: str, data: st.DataObject) -> None:
    check(name, data.draw(damaged(name)))


@pytest.mark.parametrize("name", MINE)
@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=400))
def test_any_text(name: str, text: str) -> None:
    check(name, text)


@pytest.mark.parametrize("name", MINE)
def test_a_cut_anywhere(name: str) -> None:
    """Every sample cut at 40 places: short outputs are the commonest damage."""
    for text in samples(name):
        for place in range(0, len(text), max(len(text) // 40, 1)):
            check(name, text[:place])
