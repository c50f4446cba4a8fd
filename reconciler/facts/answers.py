"""What fragments answer, field by field: a node may say anything, and what has not the agreed form is unknown in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reconciler.facts import raw, scalars
from reconciler.model.fact import Absent, Fact, Unknown, Value

T = TypeVar("T")

_WHY = {"EACCES": "PermissionDenied", "EPERM": "PermissionDenied", "denied": "PermissionDenied", "deadline": "DeadlinePassed"}
_MISSING = ("ENOENT", "missing")


def mapping(said: Any) -> Mapping[str, Any]:
    """`said` where it is a JSON object, else an empty one."""
    return said if isinstance(said, dict) else {}


def members(found: Fact[Any], key: str) -> Fact[Mapping[str, Any]]:
    """The object at `key` of a fragment's answer. Unknown(WrongShape) where none is there."""
    if not isinstance(found, Value):
        return found
    inner = mapping(found.value).get(key)
    return Value(inner) if isinstance(inner, dict) else Unknown("WrongShape", key)


def error(said: Any, missing: str = "NoSuchFile") -> Fact[Any]:
    """What `{"error": code}` says; anything else has not the agreed form."""
    code = mapping(said).get("error")
    if not isinstance(code, str):
        return Unknown("WrongShape", raw.clean(repr(said)[:200], 60))
    return Absent(missing) if code in _MISSING else Unknown(_WHY.get(code, "NotReadable"), raw.clean(code, 80))


def text(said: Any, missing: str = "NoSuchFile") -> Fact[str]:
    """The content of a small file without blanks around it; Absent(missing) for None, Absent(Empty) for nothing in it."""
    if said is None:
        return Absent(missing)
    if not isinstance(said, str):
        return error(said, missing)
    found = "".join(c for c in said.replace("\0", " ").strip() if not 0xD800 <= ord(c) <= 0xDFFF)
    return Value(found) if found else Absent("Empty")


def then(found: Fact[str], parse: Callable[[str], Fact[T]]) -> Fact[T]:
    """`parse` of the text, where there is one."""
    return parse(found.value) if isinstance(found, Value) else found


def whole(said: Any, missing: str = "NoSuchFile") -> Fact[int]:
    """A small file that holds one whole number."""
    return then(text(said, missing), scalars.whole)


def number(said: Any) -> Fact[int]:
    """A JSON number that is whole and not below 0."""
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 1 << 64:
        return Value(said)
    return Unknown("NotANumber", raw.clean(repr(said)[:200], 60))


def flag(said: Any, missing: str = "NoSuchFile") -> Fact[bool]:
    """A small file that holds 0 or 1."""
    found = text(said, missing)
    if not isinstance(found, Value):
        return found
    return Value(found.value == "1") if found.value in ("0", "1") else scalars.strange(found.value, "UnexpectedWord")


def base(found: Fact[str]) -> Fact[str]:
    """The last part of a path: what a link of /sys points to."""
    return Value(found.value.rstrip("/").rpartition("/")[2]) if isinstance(found, Value) else found
