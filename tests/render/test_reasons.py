"""Every code in the source has its words, and words never depend on what a node says."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from reconciler.errors import Usage
from reconciler.kinds import KINDS
from reconciler.render import data
from reconciler.render.reasons import _SENTENCES, error, sentence
from tests.syntax import calls, trees

# Absent is no reason by itself: each one that people can see becomes a hold with a code of its own
RAISERS = {"Unknown", "held", "HoldReason", "StepFailed", "Refused", "Refusal", "Followed", "Next", "Head"}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _errors() -> set[str]:
    """Every class of the error tree, by its bases in the source."""
    found = {"ReconcileError"}
    classes = [node for _, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while more := {c.name for c in classes if c.name not in found and any(_name(b) in found for b in c.bases)}:
        found |= more
    return found


def _codes() -> Iterator[tuple[str, str]]:
    makers = RAISERS | _errors()
    for path, call in calls():
        if _name(call.func) in makers and call.args:
            choices = [call.args[0].body, call.args[0].orelse] if isinstance(call.args[0], ast.IfExp) else [call.args[0]]
            for choice in choices:
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
                    yield choice.value, f"{path}:{call.lineno}"


CODES = dict(sorted(_codes()))


def test_the_walk_finds_what_it_should() -> None:
    assert {"NotInstalled", "NoSuchFile"}.isdisjoint(CODES)
    assert {"Unreachable", "NodeRefused", "Usage", "Refused"} <= _errors()
    assert {"SeveralVersions", "StepActive", "StillNeeded", "ManifestProblems", "NoSuchNode", "WrongShape", "StillRunning"} <= set(
        CODES
    )
    assert len(CODES) > 80


@pytest.mark.parametrize(("code", "where"), CODES.items(), ids=CODES)
def test_a_code_that_the_source_uses_has_its_words(code: str, where: str) -> None:
    assert code in _SENTENCES, where


@pytest.mark.parametrize("code", _SENTENCES)
def test_a_sentence_is_filled_by_name_alone(code: str) -> None:
    for _, name, spec, conversion in string.Formatter().parse(_SENTENCES[code]):
        assert name is None or name.isidentifier()
        assert not spec
        assert conversion is None
    assert "?" not in sentence(code, {n: "x" for _, n, _, _ in string.Formatter().parse(_SENTENCES[code]) if n}).replace(
        "mean 'x'?", ""
    )


HOSTILE: list[tuple[str, Mapping[str, Any], str]] = [
    ("{", {}, "{"),
    ("{x.__class__}", {"x": 1}, "{x.__class__}"),
    ("{0}", {}, "{0}"),
    ("%s\x1b[0m", {}, "%s\\x1b[0m"),
    ("NoRoute", {"host": "{port}\x1b"}, "no route to {port}\\x1b"),
    ("NoRoute", {}, "no route to ?"),
    ("NoSuchUser", {"user": ["a", "b\n"]}, "the node has no user a, b\\n"),
    ("NoSuchUser", {"user": []}, "the node has no user none"),
    (
        "NoSuchNode",
        {"cluster": "lab", "name": "x", "nearest": "gpu\u202e"},
        "no node of cluster lab is named 'x'; did you mean 'gpu\\u202e'?",
    ),
    ("OtherController", {"holder": "h", "node": "n", "age": 130}, "another controller (h) holds n since 2 min: "),
    ("OtherController", {"holder": "h", "node": "n", "age": None}, "another controller (h) holds n since None: "),
]


@pytest.mark.parametrize(("code", "about", "expected"), HOSTILE)
def test_what_a_node_says_is_text(code: str, about: Mapping[str, Any], expected: str) -> None:
    assert sentence(code, about).startswith(expected)


def test_an_error_as_a_sentence_and_as_data() -> None:
    caught = Usage("NoSuchPlan", name="p1")
    assert error(caught) == "no apply in the history has the id 'p1'"
    assert data.error(caught) == {"error": {"reason": "NoSuchPlan", "message": error(caught), "transient": False}}
    assert all(kind.name == name for name, kind in KINDS.items())
