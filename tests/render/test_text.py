"""Small pieces: what is safe on a terminal, host lists, numbers in words."""

from __future__ import annotations

import io
import os
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.hostlist import expand, is_node_name
from reconciler.render.style import Style, style_for
from reconciler.render.text import count, duration, fold, lines, safe, table

SAFE = [
    ("plain", "plain"),
    ("é 中 ±", "é 中 ±"),
    ("a\nb\tc", "a\\nb\\tc"),
    ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    ("\x9b31m", "\\x9b31m"),
    ("abc\u202edef", "abc\\u202edef"),
    ("\u2066x\u2069", "\\u2066x\\u2069"),
    ("a\u200bb\ufeff\xad\u061c", "a\\u200bb\\ufeff\\xad\\u061c"),
    ("\udc80", "\\udc80"),
    ("\U000e0041", "\\U000e0041"),
    (None, "None"),
    (5, "5"),
]


@pytest.mark.parametrize(("value", "expected"), SAFE)
def test_safe(value: object, expected: str) -> None:
    assert safe(value) == expected


def is_safe(text: str) -> bool:
    """One line, no control or format character, nothing that cannot be encoded."""
    text.encode()
    return not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@given(st.text(st.characters(exclude_categories=["Cn", "Co"]), max_size=300), st.integers(4, 250))
@settings(max_examples=300, deadline=None)
def test_safe_on_any_text(text: str, limit: int) -> None:
    found = safe(text, limit)
    assert len(found) <= limit
    assert is_safe(found)
    assert safe(found, limit) == found


def test_only_the_last_lines_of_what_a_command_said() -> None:
    assert lines("\n".join(map(str, range(20))) + "\n\n", 3) == ["17", "18", "19"]
    assert lines("  ") == []
    assert lines("a\x1bb\u2028c") == ["a\\x1bb", "c"]


FOLDED = [
    ([], ""),
    (["gpu01"], "gpu01"),
    (["gpu01", "gpu02", "gpu03", "gpu07"], "gpu[01-03,07]"),
    (["gpu3", "gpu1", "gpu2"], "gpu[1-3]"),
    (["gpu9", "gpu10", "gpu11"], "gpu9,gpu[10-11]"),
    (["gpu01", "gpu1"], "gpu01,gpu1"),
    (["login", "gpu01", "gpu02"], "login,gpu[01-02]"),
    (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
    (["gpu01", "gpu01", "gpu02"], "gpu[01-02]"),
    (["n20240101", "n20240102"], "n20[240101-240102]"),
    (["a1.b", "a2.b"], "a1.b,a2.b"),
    (["a\x1b1"], "a\\x1b1"),
]


@pytest.mark.parametrize(("names", "expected"), FOLDED)
def test_fold(names: list[str], expected: str) -> None:
    assert fold(names) == expected


names = st.from_regex(r"[a-z]{1,3}[0-9]{0,9}(-?[a-z][0-9]{0,3})?", fullmatch=True).filter(is_node_name)


@given(st.lists(names, min_size=1, max_size=30, unique=True))
@settings(max_examples=300, deadline=None)
def test_what_was_folded_expands_to_the_same_names(several: list[str]) -> None:
    assert sorted(expand(fold(several))) == sorted(several)


COUNTS = [
    (0, "change", "0 changes"),
    (1, "change", "1 change"),
    (2, "node", "2 nodes"),
    (2, "apply", "2 applies"),
    (1, "apply", "1 apply"),
    (0, "key", "0 keys"),
]


@pytest.mark.parametrize(("number", "noun", "expected"), COUNTS)
def test_count(number: int, noun: str, expected: str) -> None:
    assert count(number, noun) == expected


DURATIONS = [
    (0.04, "0.0 s"),
    (0.42, "0.4 s"),
    (12.3, "12 s"),
    (119, "119 s"),
    (120, "2 min"),
    (7199, "120 min"),
    (7200, "2 h"),
    (200_000, "2 d"),
]


@pytest.mark.parametrize(("seconds", "expected"), DURATIONS)
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_table() -> None:
    assert table([("a", "bb"), ("ccc", "")]) == ["a    bb", "ccc"]
    assert table([]) == []


def test_colours_only_where_a_person_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Style(True)("x", "bold", "red"), Style(True)("", "red"), Style(False)("x", "red")) == ("\x1b[1;31mx\x1b[0m", "", "x")
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    main, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        found = [style_for(stream).on]
        for name, value in (("NO_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "dumb")):
            monkeypatch.setenv(name, value)
            found.append(style_for(stream).on)
        assert found == [True, False, True, False]
    os.close(main)
    assert not style_for(io.StringIO()).on
