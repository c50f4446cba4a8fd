"""Cases as data: YAML files below tests/data, and the three answers as plain values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.fact import Absent, Fact, Facts, Raw, Reading, Unknown, Value

DATA = Path(__file__).parent / "data"
# libyaml where PyYAML was built with it: every process that collects tests reads all cases; in Python it takes ten times as long
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The one document of a file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def load(name: str) -> list[Any]:
    """The documents of one file of cases, each with its `name` as the test's id."""
    found = read_yaml(DATA / name)
    return [pytest.param(case, id=str(case["name"])) for case in found]


def values(name: str) -> list[Any]:
    """The same without pytest's wrapping."""
    found: list[Any] = read_yaml(DATA / name)
    return found


def raw(said: Mapping[str, Any]) -> Raw:
    """A part's answer: `out` and `err` as text or (`out64`) bytes, `status`, `error`. Text alone: it ended with 0."""
    out = base64.b64decode(said["out64"]) if "out64" in said else str(said.get("out", "")).encode("utf-8", "surrogatepass")
    error = str(said.get("error", ""))
    status = said.get("status", None if error else 0)
    return Raw(out, str(said.get("err", "")).encode(), status, error, str(said.get("source", "")))


def facts(**parts: Raw | tuple[Raw, ...]) -> Facts:
    """Facts by key; `_` in a name stands for `-`."""
    named = {key.replace("_", "-"): value if isinstance(value, tuple) else (value,) for key, value in parts.items()}
    return keyed(named)


def keyed(parts: Mapping[str, tuple[Raw, ...]]) -> Facts:
    return Facts({key: Reading(key, raws, 0.0, "boot") for key, raws in parts.items()})


def told(fact: Fact[Any]) -> dict[str, Any]:
    """A fact as the cases write it: {value: ...}, {absent: reason} or {unknown: why}."""
    if isinstance(fact, Value):
        return {"value": plain(fact.value)}
    return {"absent": fact.reason} if isinstance(fact, Absent) else {"unknown": fact.why}


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if isinstance(value, str | int | bool | None) else str(value)


def is_fact(found: object) -> bool:
    """One of the three, with a code that is a word: CamelCase."""
    if isinstance(found, Value):
        return True
    code = found.reason if isinstance(found, Absent) else found.why if isinstance(found, Unknown) else ""
    return code.isidentifier() and code[0].isupper()
