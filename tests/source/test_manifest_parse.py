"""YAML as text with places, and what is refused of it."""

from __future__ import annotations

import time

import pytest
import yaml

from reconciler.model.desired import Origin
from reconciler.model.problem import Problem
from reconciler.source import parse as module
from reconciler.source.parse import MAX_BYTES, Data, Parsed, parse

LOADERS = [yaml.SafeLoader, yaml.CSafeLoader]


@pytest.fixture(params=LOADERS, ids=["python", "c"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml and without."""
    monkeypatch.setattr(module, "_LOADER", request.param)


def data(text: str) -> list[Data]:
    """The documents of a text that has no problem."""
    parsed = parse(text.encode(), "f.yaml")
    assert parsed.problems == ()
    return [d.data for d in parsed.documents]


def refused(content: bytes) -> tuple[Problem, Parsed]:
    """The one problem of `content`."""
    parsed = parse(content, "f.yaml")
    (problem,) = parsed.problems
    return problem, parsed


def test_a_value_is_the_text_that_was_typed() -> None:
    text = "{a: 3.10, b: 0644, c: no, d: 2e-4, e: 'null', f: null, g: ~, h: , i: 1:30, j: true, k: \"\"}"
    wanted = {"a": "3.10", "b": "0644", "c": "no", "d": "2e-4", "e": "null", "f": None, "g": None, "h": None}
    assert data(text) == [{**wanted, "i": "1:30", "j": "true", "k": ""}]


def test_places_are_those_of_an_editor() -> None:
    parsed = parse("\ufeffa: 1\r\nb:\r\n  - x\r\n  - {c: d}\r\n---\r\n# empty\r\n---\r\ne: f\r\n".encode(), "f.yaml")
    first, second = parsed.documents
    assert first.value(("b", 1, "c")) == Origin("f.yaml", 4, 9)
    assert first.key(("b", 1, "c")) == Origin("f.yaml", 4, 6)
    assert first.value(("b", 1, "no", "such")) == Origin("f.yaml", 4, 5)
    assert second.key(("e",)) == Origin("f.yaml", 8, 1)


@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        (b"a: &x 1", "yaml-anchor", 1, 4),
        (b"a: &x {b: 1}", "yaml-anchor", 1, 4),
        (b"a: &x []\nb: *x", "yaml-anchor", 1, 4),
        (b"a: !!python/object:os.system 1", "yaml-tag", 1, 4),
        (b"a: ! 1", "yaml-tag", 1, 4),
        (b"a: !!map {b: 1}", "yaml-tag", 1, 4),
        (b"<<: {a: 1}", "yaml-merge", 1, 1),
        (b"'': 1", "key-not-text", 1, 1),
        (b"? [a]\n: b", "key-not-text", 1, 3),
        (b"a: 1\nb: 2\na: 3", "key-twice", 3, 1),
        (b"a: b\x00", "hidden-character", 1, 5),
        (b"a: 1\nb: \x1b[31m", "hidden-character", 2, 4),
        ("a: 1 # \u202e".encode(), "hidden-character", 1, 8),
        (b"a: 1\nb: caf\xe9", "not-utf8", 2, 7),
        ("a: 1".encode("utf-16"), "not-utf8", 1, 1),
        (b"a: {b: c[1-2]}", "not-yaml", 1, 9),
        (b"a:\n\tb: 1", "not-yaml", 2, 1),
        (b"a: b: c", "not-yaml", 1, 5),
        (b"a: 'b", "not-yaml", 1, 6),
        (b"a: @b", "not-yaml", 1, 4),
    ],
)
def test_refused(content: bytes, code: str, line: int, column: int) -> None:
    problem, _ = refused(content)
    assert (problem.code, problem.line, problem.column) == (code, line, column)


@pytest.mark.parametrize(
    ("content", "hint"),
    [(b"a: {b: c[1-2]}", "host-list"), (b"a:\n\tb: 1", "tab"), (b"a: b: c", "colon"), (b"a: 'b", "")],
)
def test_hints(content: bytes, hint: str) -> None:
    assert refused(content)[0].data["hint"] == hint


def test_documents_before_a_mistake_are_kept_and_the_cut_one_is_not() -> None:
    _, parsed = refused(b"a: 1\n---\nb: {c: d\n")
    assert [d.data for d in parsed.documents] == [{"a": "1"}]
    assert not parsed.complete


def test_a_second_key_does_not_disturb_the_first() -> None:
    problem, parsed = refused(b"a: {x: 1}\na: {x: 2, y: [3]}\nb: 4\n")
    (document,) = parsed.documents
    assert document.data == {"a": {"x": "1"}, "b": "4"}
    assert document.repeated
    assert document.value(("a", "x")).line == 1
    assert problem.data == {"found": "a", "line": 1}


BOMBS = {
    "flow sequences": b"[" * 1_000_000,
    "flow mappings": b"{a: " * 300_000,
    "block sequences": b"- " * 500_000,
    "explicit keys": b"? " * 300_000,
    "lines of flow": b"a: [\n" + b"[\n" * 300_000,
    "aliases": b"a: &a [x, x]\n" + b"".join(b"b%d: [*a, *a]\n" % n for n in range(1000)),
    "one scalar": b"a: '" + b"x" * 3_000_000,
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_bombs_are_a_problem_soon(content: bytes, request: pytest.FixtureRequest) -> None:
    if "python" in request.node.name:
        content = content[:20_000]
    start = time.process_time()
    problem, _ = refused(content)
    assert problem.code in ("too-deep", "not-yaml", "yaml-anchor", "key-not-text")
    assert time.process_time() - start < 3


def test_a_large_file_is_not_parsed() -> None:
    problem, _ = refused(b"#" * (MAX_BYTES + 1))
    assert (problem.code, problem.data) == ("file-too-large", {"size": MAX_BYTES + 1, "limit": MAX_BYTES})


def test_an_error_without_a_place_is_still_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise yaml.YAMLError("broken")

    monkeypatch.setattr(yaml, "parse", broken)
    assert refused(b"a: 1")[0].data == {"said": "broken", "hint": ""}
