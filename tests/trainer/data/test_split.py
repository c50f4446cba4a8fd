"""The split: what it promises for any rows, and that it does not move from one version to the next."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.data.make import question, row
from trainer.data import digest
from trainer.data.split import border, split

LARGEST = 2**64 - 1
TEXTS = st.lists(st.integers(0, 40).map(lambda number: f"text {number}"), max_size=60)
SHARES = st.floats(0, 0.99)


def sides(texts: Sequence[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    training, validation = split([question(at, text) for at, text in enumerate(texts)], share, seed)
    assert sorted(training + validation) == list(range(len(texts)))
    assert training == sorted(training)
    assert validation == sorted(validation)
    return [texts[at] for at in training], [texts[at] for at in validation]


@given(TEXTS, SHARES, st.integers(0, 5))
def test_equal_rows_are_on_one_side_and_neither_side_is_empty_without_need(texts: list[str], share: float, seed: int) -> None:
    training, validation = sides(texts, share, seed)
    assert set(training).isdisjoint(validation)
    if len(set(texts)) > 1 and share > 0:
        assert training
        assert validation


@given(st.lists(st.integers(), unique=True, min_size=2, max_size=200), st.floats(0.01, 0.99))
def test_the_share_is_met_where_rows_differ(numbers: list[int], share: float) -> None:
    _, validation = sides([f"text {number}" for number in numbers], share, 1)
    assert len(validation) == min(max(round(len(numbers) * share), 1), len(numbers) - 1)


@given(TEXTS, SHARES)
def test_the_order_of_the_rows_does_not_matter(texts: list[str], share: float) -> None:
    there, back = sides(texts, share, 3), sides(texts[::-1], share, 3)
    assert [sorted(side) for side in there] == [sorted(side) for side in back]


@given(TEXTS, SHARES)
def test_whole_groups_come_as_near_to_the_share_as_one_more_or_less_would(texts: list[str], share: float) -> None:
    _, validation = sides(texts, share, 2)
    largest = max((texts.count(text) for text in texts), default=0)
    wanted = max(round(len(texts) * share), 1) if share else 0
    assert len(set(texts)) < 2 or abs(len(validation) - wanted) <= largest


def test_everything_is_training_when_nothing_is_shared_out() -> None:
    assert sides(["a", "b"], 0, 1) == (["a", "b"], [])


def test_one_row_stays_in_training() -> None:
    assert sides(["a"], 0.5, 1) == (["a"], [])
    assert sides(["a", "a"], 0.5, 1) == (["a", "a"], [])


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan")])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(ValueError, match="allowed is 0"):
        split([], share, 1)


def test_another_seed_gives_another_split() -> None:
    texts = [f"text {number}" for number in range(100)]
    found = {tuple(sides(texts, 0.1, seed)[1]) for seed in range(20)}
    assert len(found) == 20


def test_the_split_of_these_rows_is_the_one_it_always_was() -> None:
    """A run that is resumed by a newer trainer must not train on what it validated on."""
    texts = [f"text {number}" for number in range(40)]
    assert sides(texts, 0.1, 42)[1] == PINNED


PINNED = ["text 20", "text 22", "text 24", "text 25"]


@pytest.mark.parametrize(
    ("ranks", "share", "validation"),
    [
        ([LARGEST, LARGEST, 5], 0.3, 1),
        ([LARGEST, LARGEST, LARGEST, 5], 0.8, 1),  # training needs the last group, although one row is far from 80%
        ([5, 5, LARGEST, 7], 0.9, 3),
        ([5, 5, 5, 6, 6, LARGEST], 0.5, 3),
        ([5, 6, 6, 6, 7, 8, 9, 10], 0.25, 1),  # one row instead of two is nearer than four
    ],
)
def test_the_border_is_laid_between_groups(ranks: list[int], share: float, validation: int) -> None:
    found = border(ranks, share)
    assert sum(rank < found for rank in ranks) == validation
    assert found <= LARGEST  # a rank, so that it can be compared as one


def test_a_digest_tells_apart_what_is_learned_differently() -> None:
    rows = [
        row("user", "a", "assistant", "b"),
        row("user", "ab", "assistant", ""),
        row("user", "a\nb", "assistant", ""),
        row("user", "a", "user", "b"),
        row("user", "a\nb"),
        row("system", "s", "user", "a", "assistant", "b"),
        row("system", "t", "user", "a", "assistant", "b"),
        row("user", "a", "system", "s", "assistant", "b"),
        row("system", "1:s,user1", "user", "a"),
    ]
    contents = [digest.content(one) for one in rows]
    assert len(set(contents)) == len(rows)
    assert len(set(map(digest.of, contents))) == len(rows)


def test_a_digest_does_not_tell_apart_the_same_in_two_formats() -> None:
    said = ("user", "a\n\nb", "assistant", "c")
    assert digest.content(row(*said)) == digest.content(row(*said, kind="instruction", index=7))
