"""Equal and nearly equal rows: sketches against the true similarity, groups against comparing every row with every other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from trainer.data import groups as module
from trainer.data import ledger as notes
from trainer.data import sketch
from trainer.data.groups import NEAR, Groups, groups
from trainer.data.ledger import RECORD, Ledger
from trainer.data.sketch import SHORTEST, SLOTS, WIDTH, sketches

pytestmark = pytest.mark.train
ENGLISH = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=2 + n % 9)) for n in range(3000)]
CHINESE = [chr(0x4E00 + n) for n in range(3000)]


def text(draw: random.Random, size: int, chinese: bool) -> str:
    return ("" if chinese else " ").join(draw.choices(CHINESE if chinese else ENGLISH, k=size))


def changed(draw: random.Random, given: str, times: int) -> str:
    """The same with some places overwritten."""
    letters = list(given)
    for _ in range(times):
        letters[draw.randrange(len(letters))] = "ß"
    return "".join(letters)


def pieces(given: str) -> set[bytes]:
    """What a sketch is of, by the words of its docstring and without numpy."""
    plain = bytes(byte for byte in given.lower().encode() if byte > 127 or chr(byte).isalnum())
    return {plain[at : at + WIDTH] for at in range(len(plain) - WIDTH + 1)}


def jaccard(one: str, other: str) -> float:
    a, b = pieces(one), pieces(other)
    return len(a & b) / len(a | b)


def estimates(ones: Sequence[str], others: Sequence[str]) -> np.ndarray:
    return (sketches([one.encode() for one in ones]) == sketches([other.encode() for other in others])).mean(axis=1)


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("size", [12, 40, 150, 2000])
def test_the_share_of_equal_slots_is_the_similarity_on_average_and_nearly(size: int, chinese: bool) -> None:
    draw = random.Random(size)
    ones = [text(draw, size, chinese) for _ in range(150)]
    others = [changed(draw, one, draw.randrange(max(len(one) // 12, 2))) for one in ones]
    true = np.array([jaccard(one, other) for one, other in zip(ones, others, strict=True)])
    off = estimates(ones, others) - true
    seen = np.minimum([len(pieces(one)) for one in ones], SLOTS)  # a slot that borrows what it has says nothing new
    expected = np.sqrt(true * (1 - true) / seen)
    assert abs(off.mean()) < 4 * expected.mean() / np.sqrt(len(ones))
    assert np.sqrt((off**2).mean()) < 1.3 * np.sqrt((expected**2).mean())


def test_case_space_and_signs_make_no_difference() -> None:
    one = "The quick brown fox, it jumps over the lazy dog; 敏捷的棕色狐狸 (at 10:30)"
    assert estimates([one], [one.upper().replace(" ", "\n\t ").replace(",", " -- ")]) == [1.0]


def test_a_text_has_the_same_sketch_alone_in_company_and_cut_by_the_working_size(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    texts = [text(draw, draw.choice([8, 60, 9000]), draw.random() < 0.5).encode() for _ in range(40)]
    whole = sketches(texts)
    for piece in (50, 4099, 10**6):
        monkeypatch.setattr(sketch, "_PIECE", piece)
        assert (sketches(texts) == whole).all()
    assert (np.concatenate([sketches([one]) for one in texts]) == whole).all()


@pytest.mark.parametrize("size", [0, 1, SHORTEST - 1, SHORTEST])
def test_a_text_that_is_too_short_has_no_sketch(size: int) -> None:
    (found,) = sketches([b"x. " * size])
    assert found.any() == (size >= SHORTEST)


def found(texts: Sequence[str], keys: Sequence[int] | None = None, examples: int = 1000) -> Groups:
    records = np.zeros(len(texts), RECORD)
    raw = [one.encode() for one in texts]
    records["sketch"] = sketches(raw)
    records["key"] = [hash(one) % 2**63 + 1 for one in texts] if keys is None else keys
    with Ledger() as ledger:
        for at in range(0, len(texts), 7):
            ledger.append(records[at : at + 7], raw[at : at + 7])
        return groups(ledger, examples)


def by_hand(texts: Sequence[str]) -> list[int]:
    """For each text the first of its group, by comparing the sketches of all pairs."""
    every = sketches([one.encode() for one in texts])
    group = list(range(len(texts)))
    for row in range(len(texts)):
        for first in range(row):
            near = texts[row] == texts[first] or (every[row].any() and (every[row] == every[first]).mean() >= NEAR)
            if near and group[first] != group[row]:
                low, high = sorted((group[first], group[row]))
                group = [low if value == high else value for value in group]
    return group


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sorted_at_once", [10**6, 300, 40])  # all kinds of key at once, two of them, a part of one
def test_groups_are_those_that_comparing_every_pair_gives(seed: int, sorted_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SORTED", sorted_at_once)
    monkeypatch.setattr(module, "_PAIRS", 3)
    monkeypatch.setattr(notes, "_AT_ONCE", 11)
    draw = random.Random(seed)
    texts = [text(draw, draw.randint(1, 60), draw.random() < 0.5) for _ in range(40)]
    for _ in range(80):
        one = draw.choice(texts)
        texts.append(one if draw.random() < 0.3 else changed(draw, one, draw.randrange(1, 4)))
    draw.shuffle(texts)
    got = found(texts)
    assert got.equal.tolist() == [texts.index(one) for one in texts]
    assert got.near.tolist() == by_hand(texts)
    for pair in got.pairs:
        assert pair.first < pair.row
        assert NEAR <= pair.similarity <= 1
        assert got.near[pair.first] == got.near[pair.row]


def test_a_hundred_copies_are_one_group_whose_first_is_the_first() -> None:
    got = found(["other words that are long enough for a sketch", *["the very same words as in every other row"] * 100])
    assert got.equal.tolist() == [0, *[1] * 100]
    assert got.near.tolist() == got.equal.tolist()
    assert got.pairs == ()


def test_nothing_is_like_nothing() -> None:
    for texts in ([], ["a"], ["", ""]):
        got = found(texts, keys=range(1, len(texts) + 1))
        assert got.near.tolist() == list(range(len(texts)))


def test_only_the_first_pairs_are_kept() -> None:
    draw = random.Random(0)
    texts = [text(draw, 50, False) for _ in range(30)]
    got = found(texts + [one + "." + "x" for one in texts], examples=4)
    assert [(pair.first, pair.row) for pair in got.pairs] == [(n, 30 + n) for n in range(4)]


def test_notes_are_read_back_as_they_were_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(notes, "_AT_ONCE", 4)
    records = np.zeros(10, RECORD)
    records["key"] = np.arange(10)
    with Ledger(tmp_path) as ledger:
        ledger.append(records[:3], [b"first line\nand\tmore", "字".encode() * 100, b"\x00\x1b[31m"])
        ledger.append(records[3:], [b"x" * notes.BEGINNING] * 7)
        assert [(begin, part["key"].tolist()) for begin, part in ledger.pieces()] == [
            (0, [0, 1, 2, 3]),
            (4, [4, 5, 6, 7]),
            (8, [8, 9]),
        ]
        assert ledger.pick([7, 0, 7])["key"].tolist() == [7, 0, 7]
        assert ledger.beginning(0) == "first line and more"
        assert ledger.beginning(1) == "字" * (notes.BEGINNING // 3) + "…"
        assert ledger.beginning(2) == "\ufffd\ufffd[31m"
        assert list(tmp_path.iterdir()) == []  # it has no name, so nothing is left of it when the process is killed
