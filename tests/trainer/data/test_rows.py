"""Order of roles, empty turns, languages, lengths: cases as data, and a slow count beside the quick one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import load
from tests.trainer.data.make import preference, row
from trainer.data import roles
from trainer.data.language import language
from trainer.data.lengths import Lengths
from trainer.data.row import Row


def of_roles(names: list[str]) -> Row:
    parts: list[list[str]] = [[]]
    for name in names:
        if name == "|":
            parts.append([])
        else:
            parts[-1] += [name, "words"]
    return row(*parts[0]) if len(parts) == 1 else preference(*parts)


@pytest.mark.parametrize("case", load("training/roles.yaml"))
def test_the_order_of_roles(case: dict[str, Any]) -> None:
    assert roles.order(of_roles(case["roles"])) == case.get("said", "")


@pytest.mark.parametrize(
    ("given_row", "said"),
    [
        (row("user", "a", "assistant", "b"), ""),
        (row(), "messages has no message"),
        (row("user", "a", "assistant", ""), "messages: message 2 (assistant) is empty"),
        (row("user", " \n　", "assistant", "b"), "messages: message 1 (user) is empty"),
        (preference(["user", "a"], ["assistant", "b"], ["assistant", "c"]), ""),
        (preference(["user", "a"], ["assistant", "b"], []), "rejected has no message"),
        (preference(["user", "a"], ["assistant", " "], ["assistant", "c"]), "chosen: message 1 (assistant) is empty"),
    ],
)
def test_empty_turns(given_row: Row, said: str) -> None:
    assert roles.empty(given_row) == said


@pytest.mark.parametrize("case", load("training/languages.yaml"))
def test_languages(case: dict[str, Any]) -> None:
    assert language(str(case["text"]).encode()) == case["language"]


def slowly(text: str) -> str:
    """The rule as the module's docstring has it, character by character and by their names."""
    han = latin = east = other = 0
    for character in text:
        name = unicodedata.name(character, "")
        size = len(character.encode())
        if name.startswith("CJK UNIFIED"):
            han += size
        elif name.startswith("LATIN"):
            latin += size
        elif name.startswith(("HIRAGANA", "KATAKANA", "HANGUL")):
            east += size
        elif name.startswith(("GREEK", "CYRILLIC")):
            other += size
    if 10 * east >= han > 0:
        other, han = other + han, 0
    found = {"chinese": han, "english": latin, "other": other + east}
    most = max(found.values())
    return next(name for name, count in found.items() if count == most) if most else "none"


LETTERS = st.sampled_from("abzéßŁ 汉字中文㐀\U00020000のカ한λя1.,。😀\n")


@given(st.text(LETTERS, max_size=60))
def test_the_quick_count_is_the_slow_one(text: str) -> None:
    assert language(text.encode()) == slowly(text)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=300))
def test_lengths_are_exact_but_for_percentiles(lengths: list[int]) -> None:
    counted = Lengths()
    for length in lengths:
        counted.add(length)
    found = counted.summary()
    assert found is not None
    assert (found.total, found.largest) == (sum(lengths), max(lengths))
    assert found.mean == round(sum(lengths) / len(lengths), 2)
    for share, value in ((0.5, found.median), (0.95, found.p95), (0.99, found.p99)):
        exact = next(length for length in sorted(lengths) if sum(other <= length for other in lengths) >= share * len(lengths))
        assert exact * 0.999 - 1 <= value <= exact
    assert sum(bar.count for bar in found.histogram) == len(lengths)
    assert list(edges(found.histogram)) == sorted(edges(found.histogram))


def edges(bars: tuple[Any, ...]) -> Iterator[int]:
    for bar in bars:
        yield bar.low
        yield bar.low if bar.high is None else bar.high


def test_the_bars_of_a_histogram_have_one_round_width_and_the_last_takes_the_rest() -> None:
    counted = Lengths()
    for length in [*range(1000), 90_000]:
        counted.add(length)
    found = counted.summary()
    assert found is not None
    widths = {(bar.high or 0) - bar.low for bar in found.histogram[:-1]}
    assert widths == {50}
    last = found.histogram[-1]
    assert (last.high, last.count) == (None, 1)


def test_nothing_has_no_lengths() -> None:
    assert Lengths().summary() is None
