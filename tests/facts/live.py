"""Cases of live facts: what the parts of a fact answer, put together from a case's files, commands and fragments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.facts.catalogue import BY_NAME
from reconciler.facts.live import About
from reconciler.model.fact import Ask, Part, Raw, Read, Run
from tests.cases import raw, values

FILES = ("host", "devices", "kernel")
ABOUT = About("gpu01", {"gpu01": "10.0.0.1", "gpu02": "10.0.0.2"})
MISSING = Raw(err=b"No such file or directory", error="missing")


def cases() -> list[Mapping[str, Any]]:
    return [case for file in FILES for case in values(f"facts/live/{file}.yaml")]


def raws(case: Mapping[str, Any]) -> tuple[Raw, ...]:
    """One answer for each part of the case's fact, in order."""
    return tuple(_answer(part, case) for part in BY_NAME[case["fact"]].parts(ABOUT))


def _answer(part: Part, case: Mapping[str, Any]) -> Raw:
    if isinstance(part, Read):
        files = case.get("files", {})
        return Raw(files[part.path].encode()) if part.path in files else MISSING
    if isinstance(part, Run):
        said = case.get("run", {}).get(part.argv[0])
        return raw(said) if said else MISSING
    assert isinstance(part, Ask)
    return Raw(json.dumps(case["ask"][part.fragment]).encode(), status=0)


def at(value: Any, path: str) -> Any:
    """`a > 0 > b` in a plain value; all of it for an empty path."""
    for step in path.split(" > ") if path else ():
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value
