"""Whatever a node answers, a live fact is one of the three answers, and can be kept, compared and shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.facts.catalogue import BY_NAME, LIVE
from reconciler.facts.formats import plain
from reconciler.facts.live import LiveFact, selected
from reconciler.model.fact import Raw
from reconciler.render.facts import lines
from reconciler.render.headlines import headline
from tests.cases import is_fact
from tests.facts.live import ABOUT, cases, raws
from tests.facts.test_fuzz import raws as any_raw

CASES = cases()
NAMES = sorted({case["fact"] for case in CASES})
JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    1 << 70,
    1.5,
    "",
    "x",
    "0",
    "-1",
    "\x1b[31m\u202e\udc80",
    [],
    [[]],
    {},
    {"error": 5},
    {"error": "EIO"},
)


def holds(fact: LiveFact, answers: tuple[Raw, ...]) -> None:
    """It is a fact; its plain value survives the way to the disk; its stable part and its words can be made of it."""
    found = fact.read(answers)
    assert is_fact(found)
    value = json.loads(json.dumps(plain(found), allow_nan=False))
    json.dumps(selected(fact, value), sort_keys=True).encode()
    said = [headline(fact.name, value), *lines(value)]
    assert said[0]
    "\n".join(said).encode("utf-8")
    assert "\x1b" not in said[0]
    assert "\n" not in said[0]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_answers(name: str, data: st.DataObject) -> None:
    fact = BY_NAME[name]
    count = len(fact.parts(ABOUT))
    some = data.draw(st.lists(any_raw, min_size=1, max_size=4))
    holds(fact, tuple(some[i % len(some)] for i in range(count)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", NAMES)
@given(value=json_values)
@settings(max_examples=40, deadline=None)
def test_any_json(name: str, value: Any) -> None:
    fact = BY_NAME[name]
    holds(fact, (Raw(json.dumps(value).encode(), status=0),) * len(fact.parts(ABOUT)))


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_damaged_cases(name: str, seed: int) -> None:
    chosen = random.Random(seed)
    answers = list(raws(chosen.choice([case for case in CASES if case["fact"] == name])))
    for _ in range(chosen.randint(1, 3)):
        i = chosen.randrange(len(answers))
        answers[i] = _damaged(answers[i], chosen)
    holds(BY_NAME[name], tuple(answers))


def _damaged(answer: Raw, chosen: random.Random) -> Raw:
    """JSON with one value replaced, one key renamed or one entry left out; other text with bytes cut, doubled or overwritten."""
    try:
        value = json.loads(answer.out)
    except ValueError:
        value = None
    if isinstance(value, dict | list) and chosen.random() < 0.8:
        for _ in range(chosen.randint(1, 4)):
            value = _replaced(value, chosen)
        return Raw(json.dumps(value).encode(), status=answer.status)
    data = bytearray(answer.out)
    for _ in range(chosen.randint(1, 5)):
        i = chosen.randrange(len(data) + 1)
        j = min(len(data), i + chosen.randint(0, 12))
        data[i:j] = chosen.choice([b"", bytes([chosen.randrange(256)]), bytes(data[i:j]) * 2, b"\n", b" ", b"-1", b"9" * 40])
    return Raw(bytes(data), answer.err, answer.status, answer.error)


def _replaced(value: Any, chosen: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or chosen.random() < 0.15:
        return chosen.choice(JUNK)
    key: Any = chosen.choice(list(value)) if isinstance(value, dict) else chosen.randrange(len(value))
    change = chosen.random()
    if change < 0.1:
        return {k: v for k, v in value.items() if k != key} if isinstance(value, dict) else value[:key]
    if change < 0.2 and isinstance(value, dict):
        return {
            (chosen.choice(["", "\udc80", "absent", "unknown", "error", "x" * 300]) if k == key else k): v for k, v in value.items()
        }
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = _replaced(value[key], chosen)
    return changed


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path to every part of a JSON value, itself included."""
    yield ()
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from ((key, *rest) for rest in _places(value[key]))


def _put(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = _put(value[path[0]], path[1:], junk)
    return changed


def _every_damage(answer: Raw) -> Iterator[Raw]:
    """Junk in every place of a JSON answer; junk for every line, and for every word of every line, of a text."""
    try:
        value = json.loads(answer.out)
    except ValueError:
        lines = answer.out.split(b"\n")
        for i, line in enumerate(lines):
            words = line.split(b" ")
            for new in (junk.encode("utf-8", "replace") for junk in JUNK if isinstance(junk, str)):
                yield Raw(b"\n".join([*lines[:i], new, *lines[i + 1 :]]), answer.err, answer.status)
                for k in range(len(words)):
                    changed = b" ".join([*words[:k], new, *words[k + 1 :]])
                    yield Raw(b"\n".join([*lines[:i], changed, *lines[i + 1 :]]), answer.err, answer.status)
        return
    for path in _places(value):
        for junk in JUNK:
            yield Raw(json.dumps(_put(value, path, junk)).encode(), status=answer.status)


@pytest.mark.parametrize("name", NAMES)
def test_junk_in_every_place(name: str) -> None:
    fact = BY_NAME[name]
    answers = raws(next(case for case in CASES if case["fact"] == name))
    for i, answer in enumerate(answers):
        for damaged in _every_damage(answer) if answer.out else ():
            changed = (*answers[:i], damaged, *answers[i + 1 :])
            found = fact.read(changed)
            assert is_fact(found)
            value = plain(found)
            json.dumps(selected(fact, value), sort_keys=True, allow_nan=False)
            assert headline(name, value)


def test_none_of_the_catalogue_is_left_out() -> None:
    assert {fact.name for fact in LIVE} >= set(NAMES)
    assert len(NAMES) >= 14
