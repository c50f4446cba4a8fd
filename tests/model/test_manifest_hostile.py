"""Every string that a manifest can hold refuses what could reach a shell, a path, a file's syntax or a terminal.

The fields are found by walking the models, so that a new one is tested without being listed here.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from reconciler.model.base import Model, model_at
from reconciler.model.manifest import KINDS
from reconciler.model.problem import Path
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.render.problems import problem_text
from reconciler.source.explain import explain
from reconciler.source.parse import Document
from reconciler.source.report import Report

UNPRINTABLE = {
    "newline": "a1\nb", "carriage return": "1\r", "nul": "a\0b", "escape": "\x1b[31m1", "bell": "1\a",
    "delete": "1\x7f", "right to left": "a\u202e1", "zero width": "a\u200b1", "line separator": "1\u2028",
    "c1": "1\x9b31m", "huge": "9" * 5000,
}  # fmt: skip
SPECIAL = {
    "shell": "; rm -rf /", "substitution": "$(id)", "backticks": "`id`", "variable": "$HOME", "pipe": "a|b",
    "and": "a&b", "redirection": "a>b", "glob": "1*?", "single quote": "1'", "double quote": '1"', "hash": "1#2",
    "backslash": "1\\n", "option": "-oProxyCommand=x", "long option": "--help", "parent": "../../etc/shadow",
    "absolute parent": "/etc/../x", "dots": "..", "percent": "1%n", "format": "{0.__class__}", "template": "{{ 7*7 }}",
    "section": "[x]\nbaseurl=http://a", "space": "1 2", "tab": "1\t2", "homoglyph": "\u0430dmin1", "empty": "",
    "fullwidth": "\uff11", "arabic digit": "\u0661", "comma": "a,,b", "at": "@", "equals": "=1", "colon": "x::",
    "exclamation": "!1", "dollar brace": "${IFS}1",
}  # fmt: skip
HOSTILE = UNPRINTABLE | SPECIAL
FREE_TEXT = {("metadata", "description")}  # for people only: printable, one line; never on a node
KEYS_FOR = {"os": "debian-12", "mirrors": "nvidia", "files": "/etc/x", "nodes": "n1", "overrides": "n1"}
BASE: dict[str, dict[str, Any]] = {
    "Versions": {"apiVersion": "reconcile/v1", "kind": "Versions", "metadata": {"name": "x"}, "spec": {}},
    "Cluster": {
        "apiVersion": "reconcile/v1",
        "kind": "Cluster",
        "metadata": {"name": "x"},
        "spec": {"nodes": {"n1": {}}},
    },
}
KEY = "[key]"


def _places(annotation: Any, path: Path) -> Iterator[Path]:
    """Each place below `annotation` where text can stand: values, and keys of maps (marked by a last step)."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _places(get_args(annotation)[0], path)
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _places(member, path)
    elif origin is dict:
        yield (*path, KEY)
        yield from _places(get_args(annotation)[1], (*path, KEYS_FOR.get(str(path[-1]), "x")))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from _places(field.annotation, (*path, field.alias or name))
    elif annotation is not types.NoneType:
        yield path


PLACES = [(kind, path) for kind, cls in KINDS.items() for path in dict.fromkeys(_places(cls, ()))]


def _document(kind: str, path: Path, value: str) -> dict[str, Any]:
    """A valid document of `kind`, but for `value` at `path`."""
    data: dict[str, Any] = {**BASE[kind], "metadata": dict(BASE[kind]["metadata"]), "spec": dict(BASE[kind]["spec"])}
    here = data
    for step in path[:-1]:
        here[str(step)] = dict(here.get(str(step)) or {})
        here = here[str(step)]
    here[value if path[-1] == KEY else str(path[-1])] = {} if path[-1] == KEY and _maps_blocks(kind, path) else value
    if path[-1] == KEY and not _maps_blocks(kind, path):
        here[value] = "http://a" if "mirrors" in path else "present"
    return data


def _maps_blocks(kind: str, path: Path) -> bool:
    return model_at(KINDS[kind], (*path[:-1], "x")) is not None


def test_the_walk_finds_the_fields() -> None:
    found = {".".join(map(str, path)) for _, path in PLACES}
    assert {
        "spec.packages.[key]",
        "spec.packages.x",
        "spec.nodes.n1.ssh.proxyJump",
        "spec.os.debian-12.packages.x",
    } <= found
    assert len(PLACES) > 60


@pytest.mark.parametrize(("kind", "path"), PLACES, ids=lambda v: v if isinstance(v, str) else ".".join(map(str, v)))
def test_hostile_text_is_refused_everywhere(kind: str, path: Path) -> None:
    wanted = UNPRINTABLE if path in FREE_TEXT else HOSTILE
    for name, value in wanted.items():
        with pytest.raises(ValidationError) as caught:
            KINDS[kind].model_validate(_document(kind, path, value))
        report = Report()
        explain(Document("f.yaml", {}), KINDS[kind], caught.value, report)
        assert report.problems, name
        for problem in report.problems:
            text = problem_text(problem)
            assert text.isascii(), name
            assert text.isprintable(), name
            assert len(text) < 500, name


def test_the_base_documents_are_valid() -> None:
    for kind, data in BASE.items():
        KINDS[kind].model_validate(data)


def test_what_is_for_later_is_no_field_yet() -> None:
    def blocks(cls: type[Model]) -> Iterator[type[Model]]:
        yield cls
        for path in {p[:-1] for p in _places(cls, ())}:
            inner = model_at(cls, tuple(step for step in path))
            if inner is not None:
                yield inner

    for cls in KINDS.values():
        for block in blocks(cls):
            assert not block.later & set(block.keys()), block


def test_distributions_have_a_manager_and_a_folder() -> None:
    assert {manager for manager, _ in DISTRIBUTIONS.values()} == {"dnf", "apt"}
