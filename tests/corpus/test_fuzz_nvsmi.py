"""Any text whatsoever: a parser of nvidia-smi's outputs answers a value, Absent or Unknown, and soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Unknown, Value
from tests.corpus.cases import CORPUS

NAMES = sorted(name for name in FORMATS if name.startswith("nvsmi-"))
SAMPLES = {name: [p.read_bytes().decode("utf-8", "replace") for p in sorted((CORPUS / name).glob("*.txt"))] for name in NAMES}
EVERY = [sample for found in SAMPLES.values() for sample in found]
SOON = 10.0  # seconds of CPU: coverage traces every line, which makes this several times slower
_NOISE = [
    "\x1b[31m",
    "\r",
    "\ufffd",
    "\x00",
    "|",
    "ERR!",
    "[N/A]",
    " : ",
    ", ",
    "<gpu id=",
    "</gpu>",
    "&amp",
    "\n",
    "GPU 0: ",
    "²",
    "٣",
]


@st.composite
def damaged(draw: st.DrawFn, samples: list[str]) -> str:
    """A sample after up to six accidents."""
    text = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(0, len(text) - 1)))
        lines = text.split("\n")
        row = draw(st.integers(0, len(lines) - 1))
        accident = draw(st.sampled_from(["cut", "behead", "duplicate", "delete", "flip", "insert", "swap"]))
        if accident == "cut":
            text = text[:place]
        elif accident == "behead":
            text = text[place:]
        elif accident == "duplicate":
            text = "\n".join([*lines[:row], *([lines[row]] * draw(st.integers(2, 40))), *lines[row:]])
        elif accident == "delete":
            text = "\n".join(lines[:row] + lines[row + 1 :])
        elif accident == "flip":
            text = text[:place] + draw(st.characters()) + text[place + 1 :]
        elif accident == "insert":
            text = text[:place] + draw(st.sampled_from(_NOISE)) + text[place:]
        else:
            text = "\n".join(lines[row:] + lines[:row])
    return text


def answered(name: str, text: str) -> None:
    start = time.process_time()
    found = FORMATS[name](text)
    assert time.process_time() - start < SOON
    assert isinstance(found, Value | Absent | Unknown)
    plain(found)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_damaged_sample_is_answered(name: str, data: st.DataObject) -> None:
    answered(name, data.draw(damaged(SAMPLES[name])))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_output_of_something_else_is_answered(name: str, data: st.DataObject) -> None:
    answered(name, data.draw(damaged(EVERY)))


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(max_size=400))
@example(text="")
@example(text="\x1b[")
@example(text="\ufeff\r\n\x00")
@settings(max_examples=60, deadline=None)
def test_random_text_is_answered(name: str, text: str) -> None:
    answered(name, text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "|",
        ":",
        " : ",
        "<a>",
        "<gpu id='1'>",
        "[",
        "GPU 0: ",
        "0, ",
        "+---",
        "\n|",
        "\n",
        "    a\n",
        "9",
        "a ",
        "(UUID: ",
        "\t",
        "\x1b[",
    ],
)
def test_a_long_nonsense_is_answered_in_time(name: str, piece: str) -> None:
    for head in ("", "<nvidia_smi_log>", "GPU 00000000:00:00.0\n", "| NVIDIA-SMI 1 Bus-Id\n|==\n", "GPU 0: "):
        answered(name, head + piece * (1_000_000 // len(piece)))
