"""Every place that raises or holds with a reason gives its sentence all that the sentence says."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator

import pytest

from reconciler.render.reasons import _SENTENCES
from tests.syntax import calls, trees

ERRORS = {"Unreachable", "Garbled", "NodeRefused", "Usage", "StalePlan", "LockHeld", "StateDamaged", "SourceError"}
RAISERS = ERRORS | {"Refused", "StepFailed", "HoldReason", "held"}


def places() -> Iterator[tuple[str, str, set[str]]]:
    """(where, reason, names of the data) of each call whose data can be read from the source."""
    for path, tree in trees():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                yield from read(call, function, f"{path}:{call.lineno}")


def read(call: ast.Call, function: ast.FunctionDef, where: str) -> Iterator[tuple[str, str, set[str]]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0] if call.args else None
    if name not in RAISERS or not (isinstance(first, ast.Constant) and first.value in _SENTENCES):
        return
    given: set[str] = set()
    for keyword in call.keywords:
        if keyword.arg:
            given.add(keyword.arg)
        elif (found := keys(keyword.value, function)) is None:
            return  # only known at run time
        else:
            given |= found
    if name == "HoldReason" and len(call.args) > 1:
        found = keys(call.args[1], function)
        if found is None:
            return
        given |= found
    yield where, str(first.value), given


def keys(value: ast.expr, function: ast.FunctionDef) -> set[str] | None:
    """The keys of a dict that is written there, or of a name that the function gave one."""
    if isinstance(value, ast.Dict) and all(isinstance(key, ast.Constant) for key in value.keys):
        return {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
    if isinstance(value, ast.IfExp):
        both = keys(value.body, function), keys(value.orelse, function)
        return both[0] & both[1] if both[0] is not None and both[1] is not None else None
    if isinstance(value, ast.Name):
        assigned = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in node.targets)
        ]
        return keys(assigned[0], function) if len(assigned) == 1 else None
    return None


PLACES = sorted({(where, reason, frozenset(given)) for where, reason, given in places()}, key=lambda place: place[:2])


def test_many_places_are_looked_at() -> None:
    assert len(PLACES) > 60


@pytest.mark.parametrize(("where", "reason", "given"), PLACES, ids=[f"{reason} {where}" for where, reason, _ in PLACES])
def test_a_sentence_has_no_hole(where: str, reason: str, given: frozenset[str]) -> None:
    wanted = {name for _, name, _, _ in string.Formatter().parse(_SENTENCES[reason]) if name}
    assert wanted <= given


def test_every_reason_has_a_sentence() -> None:
    said = set()
    for _, call in calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in RAISERS and call.args and isinstance(call.args[0], ast.Constant):
            said.add(str(call.args[0].value))
    assert sorted(said - set(_SENTENCES)) == []
