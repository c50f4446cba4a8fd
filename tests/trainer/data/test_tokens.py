"""Tokens: as many as the tokenizer and its template give one by one; and what is no tokenizer, or has no template."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.trainer import tiny
from tests.trainer.data.make import preference, question, row
from trainer.data import tokens
from trainer.data.cache import tokenizer_digest
from trainer.data.row import Row
from trainer.data.tokens import Counter, TokenizerError, counts, load

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    tiny.tokenizer().save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Any:
    return load(folder)


def one_by_one(tokenizer: Any, conversation: Any) -> int:
    return len(tokenizer.apply_chat_template(conversation, tokenize=True, return_dict=False))


def test_counts_are_those_of_the_template_and_the_tokenizer(loaded: Any) -> None:
    draw = random.Random(1)
    given = [(at, row("user", tiny.sentence(draw, 1, 30), "assistant", tiny.sentence(draw, 1, 30))) for at in range(50)]
    assert counts(loaded, given) == [(at, one_by_one(loaded, one.messages)) for at, one in given]


def test_a_preference_counts_as_its_longer_conversation(loaded: Any) -> None:
    one = preference(["user", "红"], ["assistant", "one"], ["assistant", "one two three four"])
    other = preference(["user", "红"], ["assistant", "one two three four"], ["assistant", "one"])
    wanted = one_by_one(loaded, one.prompt + one.rejected)
    assert counts(loaded, [(7, one), (9, other)]) == [(7, wanted), (9, wanted)]


def test_truncation_and_padding_of_the_tokenizer_are_not_counted(folder: Path, tmp_path: Path) -> None:
    made = tiny.tokenizer()
    made.backend_tokenizer.enable_truncation(4)
    made.backend_tokenizer.enable_padding(length=100)
    made.save_pretrained(tmp_path)
    one = row("user", "red green blue", "assistant", "one two three")
    assert counts(load(tmp_path), [(0, one)]) == counts(load(folder), [(0, one)])


def test_what_the_template_refuses_is_told_for_its_row_alone(folder: Path) -> None:
    strict = load(folder)
    refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system prompts') }}{% endif %}"
    strict.chat_template = refusal + strict.chat_template
    good, bad = row("user", "a", "assistant", "b"), row("system", "s", "user", "a", "assistant", "b")
    (first, second, third) = counts(strict, [(0, good), (1, bad), (2, good)])
    assert (second, first[1]) == ((1, "no system prompts"), third[1])


def test_a_text_without_end_is_not_encoded(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "HUGE", 100)
    small, large = question(0), row("user", "x" * 200, "assistant", "y")
    assert counts(loaded, [(0, small), (1, large)])[1] == (1, 100)


@pytest.mark.parametrize("batch", [1, 50, 10**6])
def test_every_row_that_was_added_comes_back_once(batch: int, loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "BATCH", batch)
    counter = Counter(loaded)
    found: list[tuple[int, int | str]] = []
    given = [question(number) for number in range(100)]
    for at, one in enumerate(given):
        counter.add(at, one, 20)
        found += counter.ready()
    found += counter.finish()
    assert found == counts(loaded, list(enumerate(given)))


def test_a_failure_of_the_tokenizer_reaches_the_caller(loaded: Any) -> None:
    counter = Counter(loaded)
    broken = Row(0, "messages", "a", 1, 1, [{"role": "user", "content": "\ud800"}])
    counter.add(0, broken, 1)
    with pytest.raises((UnicodeEncodeError, TypeError)):
        list(counter.finish())


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="gone: no such folder"):
        load(tmp_path / "gone")
    with pytest.raises(TokenizerError, match="no tokenizer that can be read"):
        load(tmp_path)


def test_the_digest_of_a_tokenizer(folder: Path) -> None:
    one, other = load(folder), load(folder)
    assert tokenizer_digest(one) == tokenizer_digest(other)
    other.chat_template += " "
    other("some words", truncation=True, max_length=2, padding="max_length")
    assert tokenizer_digest(one) == tokenizer_digest(other)
    other.add_tokens(["<|new|>"])
    assert tokenizer_digest(one) != tokenizer_digest(other)
