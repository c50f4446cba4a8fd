"""Whatever stands in a saved output, its parser answers with one of three, in bounded time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Unknown, Value

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
OURS = (
    "chronyc",
    "collect-env",
    "dcgm-metrics",
    "df",
    "ds-report",
    "nccl-log",
    "nccl-tests",
    "pip",
    "rpm-qa",
    "slurm",
    "torchrun",
    "vllm-metrics",
)
NOISE = (
    "\x1b[31m",
    "\x1b[0m",
    "\r",
    "\r\n",
    "\ufffd",
    "\x00",
    "\n",
    "\t",
    "=",
    ":",
    "|",
    "{",
    "}",
    '"',
    "(",
    "%",
    "-",
    "#",
    "9" * 40,
)
BUSY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def samples(name: str) -> list[str]:
    found = (p for p in sorted((CORPUS / name).iterdir()) if not p.name.endswith(".meta.yaml"))
    return [p.read_bytes().decode("utf-8", "replace")[:20_000] for p in found]


def mutated(data: st.DataObject, text: str) -> str:
    """A sample after up to 8 accidents: cut, lines doubled, dropped or swapped, characters flipped, noise put in."""
    for _ in range(data.draw(st.integers(1, 8))):
        lines, at = text.split("\n"), data.draw(st.integers(0, max(len(text) - 1, 0)))
        line = text.count("\n", 0, at)
        accident = data.draw(st.integers(0, 5))
        if accident == 0:
            text = text[:at] if data.draw(st.booleans()) else text[at:]
        elif accident == 1:
            text = "\n".join(lines[: line + 1] + lines[line:])
        elif accident == 2:
            text = "\n".join(lines[:line] + lines[line + 1 :])
        elif accident == 3:
            text = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
        elif accident == 4:
            text = text[:at] + data.draw(st.sampled_from(NOISE)) + text[at:]
        else:
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[line], lines[other] = lines[other], lines[line]
            text = "\n".join(lines)
    return text


def answers(name: str, text: str) -> None:
    started = time.process_time()
    found = FORMATS[name](text)
    assert time.process_time() - started < 10.0  # of CPU: coverage traces every line
    assert isinstance(found, Value | Absent | Unknown)
    json.dumps(plain(found), allow_nan=False)


@pytest.mark.parametrize("name", OURS)
def test_any_text(name: str) -> None:
    @BUSY
    @given(st.text(max_size=2000))
    def any_text(text: str) -> None:
        answers(name, text)

    any_text()


@pytest.mark.parametrize("name", OURS)
def test_damaged_samples(name: str) -> None:
    known = samples(name)

    @BUSY
    @given(st.data())
    def damaged(data: st.DataObject) -> None:
        answers(name, mutated(data, data.draw(st.sampled_from(known))))

    damaged()


@pytest.mark.parametrize("name", OURS)
def test_long_text_takes_linear_time(name: str) -> None:
    for piece in (
        "\n",
        " ",
        "a ",
        "1 ",
        "-",
        "a-",
        ":",
        "(",
        "[",
        "{",
        '{"a":',
        '"',
        "=",
        "a=1 ",
        "a" * 50 + "\n",
        "#",
        "|",
        "%",
        "/",
        "+",
        ".",
    ):
        answers(name, piece * (200_000 // len(piece)))
    for sample in samples(name):
        answers(name, sample * (200_000 // len(sample)))
