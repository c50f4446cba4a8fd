"""Any text, and any damage to a sample: each parser gives one of the three answers, soon, and never an error."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Unknown, Value
from tests.corpus import damage
from tests.corpus.cases import Case, cases, texts
from tests.corpus.cut import OF_THE_TEXT, wrong, wrong_when_cut

SOON = 10.0  # seconds of CPU: coverage traces every line, which makes this several times slower
BUSY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
each_format = pytest.mark.parametrize("name", sorted(FORMATS))
each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


def answers(name: str, text: str) -> None:
    began = time.process_time()
    found = FORMATS[name](text)
    assert isinstance(found, Value | Absent | Unknown)
    json.dumps(plain(found), allow_nan=False)
    assert time.process_time() - began < SOON


@each_format
@BUSY
@given(text=st.text(max_size=400))
@example(text="")
@example(text="\n")
@example(text="\x1b[")
@example(text="\ufeff\r\n\x00")
@example(text="\ud800")
def test_any_text(name: str, text: str) -> None:
    answers(name, text)


@each_format
@BUSY
@given(data=st.binary(max_size=400))
def test_any_bytes(name: str, data: bytes) -> None:
    answers(name, data.decode("utf-8", "replace"))


@each_format
@BUSY
@given(seed=st.integers(0, 2**64))
def test_damaged_samples(name: str, seed: int) -> None:
    chance = random.Random(seed)
    answers(name, damage.damaged(chance.choice(texts(name)), chance))


@each_format
def test_the_output_of_something_else(name: str) -> None:
    for case in cases():
        if case.format != name:
            answers(name, case.text()[:100_000])


@each_format
def test_a_huge_line(name: str) -> None:
    for piece in range(damage.PIECES):
        answers(name, damage.huge(texts(name)[piece % len(texts(name))], piece, 200_000))
        answers(name, damage.huge("", piece, 200_000))
    longest = max(texts(name), key=len)
    for sample in texts(name):
        answers(name, repeated(sample, 200_000 if sample == longest else 40_000))


@pytest.mark.deep
@each_format
def test_every_sample_many_times(name: str) -> None:
    for sample in texts(name):
        answers(name, repeated(sample, 200_000))


def repeated(sample: str, size: int) -> str:
    return sample * (size // len(sample) + 1)


@each_case
def test_a_cut_text_says_nothing_else(case: Case) -> None:
    """At 40 places, and at the ends of lines."""
    whole, data = case.parsed(), case.path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    places = {*range(1, len(data), max(len(data) // 40, 1)), *ends[:: max(len(ends) // 40, 1)]}
    assert [(at, found) for at in sorted(places) if (found := wrong_when_cut(case, whole, at))] == []


@each_format
@BUSY
@given(seed=st.integers(0, 2**64))
def test_a_text_that_is_cut_anywhere_says_nothing_else(name: str, seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice([case for case in cases() if case.format == name])
    assert wrong_when_cut(case, _whole(case), chance.randrange(case.path.stat().st_size)) == []


_KNOWN: dict[str, object] = {}


def _whole(case: Case) -> object:
    if case.name not in _KNOWN:
        _KNOWN[case.name] = case.parsed()
    return _KNOWN[case.name]


@pytest.mark.parametrize(
    ("cut", "whole", "found"),
    [
        ({"a": 1}, {"a": 12}, 1),
        ({"a": {"unknown": "MayBeCut", "detail": "1"}}, {"a": 12}, 0),
        ({"a": {"absent": "None"}}, {"a": 12}, 1),
        ({"a": 12}, {"a": {"unknown": "Several", "detail": ""}}, 0),
        ({"a": 12}, {"a": {"absent": "None"}}, 1),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "x"}, {"b": "y"}]}, 0),
        ({"a": [{"b": "y"}]}, {"a": [{"b": "x"}, {"b": "y"}]}, 1),
        ({"a": ["tor"]}, {"a": ["torch"]}, 1),
        ({"tor": 1}, {"torch": 1}, 1),
        ({"complete": False}, {"complete": True}, 0),
        ({"message": "NVRM: GP"}, {"message": "NVRM: GPU"}, 0),
        ({"a": False}, {"a": True}, 1),
    ],
)
def test_what_counts_as_wrong(cut: object, whole: object, found: int) -> None:
    assert len(list(wrong(cut, whole, OF_THE_TEXT["nvsmi-q"]))) == found
