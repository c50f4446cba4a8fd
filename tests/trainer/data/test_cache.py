"""Tokenised data are made once for each key, whole or not at all, and refused when they are not what was written."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.checkpoint import SEAL
from trainer.data.cache import CacheDamaged, Key, kept

KEY = Key(data="d", tokenizer="t", template="c", settings={"max_length": 512}, versions={"trl": "1"})


def make(folder: Path) -> None:
    (folder / "part").mkdir()
    (folder / "part" / "tokens.arrow").write_bytes(b"123")
    (folder / "info.json").write_text("{}")


def refuse(folder: Path) -> None:
    raise AssertionError("it is there: nothing is made")


def test_it_is_made_once(tmp_path: Path) -> None:
    made = kept(tmp_path / "root", KEY, make)
    assert made == tmp_path / "root" / KEY.name
    assert kept(tmp_path / "root", KEY, refuse) == made
    assert (made / "part" / "tokens.arrow").read_bytes() == b"123"


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Key)])
def test_every_part_of_the_key_counts(name: str) -> None:
    values: dict[str, Any] = {name: {"other": 1} if name in ("settings", "versions") else "other"}
    assert dataclasses.replace(KEY, **values).name != KEY.name


def alter(folder: Path) -> None:
    (folder / "part" / "tokens.arrow").write_bytes(b"124")


def shorten(folder: Path) -> None:
    (folder / "info.json").write_text("{")


def lose(folder: Path) -> None:
    (folder / "info.json").unlink()


def add(folder: Path) -> None:
    (folder / "more.arrow").write_text("x")


def edit_seal(folder: Path) -> None:
    seal = folder / SEAL
    seal.write_text(seal.read_text().replace('"max_length": 512', '"max_length": 513'))


def lose_seal(folder: Path) -> None:
    (folder / SEAL).unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (alter, "part/tokens.arrow was altered"),
        (shorten, "info.json was altered"),
        (lose, "info.json is missing"),
        (add, "more.arrow was added"),
        (edit_seal, "its seal was altered"),
        (lose_seal, "its seal cannot be read"),
    ],
)
def test_what_was_altered_is_refused_and_left_as_it_is(damage: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    folder = kept(tmp_path, KEY, make)
    damage(folder)
    with pytest.raises(CacheDamaged, match=said) as caught:
        kept(tmp_path, KEY, refuse)
    assert str(folder) in str(caught.value)
    assert "remove the folder" in str(caught.value)
    assert folder.exists()


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    folder = kept(tmp_path, KEY, make)
    alter(folder)
    add(folder)
    with pytest.raises(CacheDamaged) as caught:
        kept(tmp_path, KEY, refuse)
    said = [problem.what for problem in caught.value.problems]
    assert said[:-1] == ["more.arrow was added", "part/tokens.arrow was altered"]


def test_a_making_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def half(folder: Path) -> None:
        make(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        kept(tmp_path, KEY, half)
    assert [path.name for path in tmp_path.iterdir()] == [f".{KEY.name}.lock"]
    kept(tmp_path, KEY, make)


def test_what_a_killed_process_left_is_made_anew(tmp_path: Path) -> None:
    left = tmp_path / f".{KEY.name}.making"
    left.mkdir(parents=True)
    (left / "torn.arrow").write_bytes(b"1")
    folder = kept(tmp_path, KEY, make)
    assert not (folder / "torn.arrow").exists()
    assert not left.exists()


def test_of_several_that_want_it_at_once_one_makes_it(tmp_path: Path) -> None:
    made: list[int] = []
    begin = threading.Barrier(4)
    found: list[Path] = []

    def once(folder: Path) -> None:
        made.append(1)
        make(folder)

    def want() -> None:
        begin.wait(timeout=60)
        found.append(kept(tmp_path, KEY, once))

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert made == [1]
    assert found == [tmp_path / KEY.name] * 4
