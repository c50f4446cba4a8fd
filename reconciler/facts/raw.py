"""What all parsers share: from a raw answer to text, with every way of failing told apart."""

from __future__ import annotations

import json
import re
from typing import Any

from reconciler.model.fact import Absent, Fact, Facts, Raw, Unknown, Value

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WHY = {
    "denied": "PermissionDenied",
    "deadline": "DeadlinePassed",
    "too-large": "OutputTooLarge",
    "not-regular": "NotARegularFile",
    "not-recorded": "NotRecorded",
    "asleep": "Asleep",
}


def clean(text: str, limit: int = 300) -> str:
    """`text` on one line without control characters, at most `limit` characters: fit for an error's detail."""
    flat = _CONTROL.sub("?", " ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def part(facts: Facts, key: str, index: int = 0) -> Raw | None:
    """One raw answer of a probe, None where it was not asked or not answered."""
    raws = facts.raws(key)
    return raws[index] if raws and index < len(raws) else None


def unread(code: str, missing: str, said: str = "") -> Absent | Unknown:
    """What the error code of a part, or of one thing in a fragment's answer, comes to; `missing`: why something is not there."""
    return Absent(missing) if code == "missing" else Unknown(_WHY.get(code, "NotReadable"), clean(said))


def _readable(raw: Raw | None, missing: str) -> Fact[Raw]:
    """The answer itself where there is one; `missing` is the reason for what is not there."""
    if raw is None:
        return Unknown("NotAsked")
    if raw.error:
        return unread(raw.error, missing, raw.err.decode("utf-8", "replace"))
    return Value(raw)


def command_text(raw: Raw | None) -> Fact[str]:
    """Standard output of a command that ended with 0; Absent(NotInstalled) where there is no such command."""
    found = _readable(raw, "NotInstalled")
    if not isinstance(found, Value):
        return found
    if found.value.status != 0:
        said = found.value.err.decode("utf-8", "replace") or found.value.out.decode("utf-8", "replace")
        return Unknown("CommandFailed", clean(said))
    return Value(found.value.out.decode("utf-8", "replace"))


def fragment(found: Raw | None) -> Fact[Any]:
    """The JSON value of a fragment; Unknown(FragmentFailed) with what it said where it ended in an error."""
    readable = _readable(found, "NotInstalled")
    if not isinstance(readable, Value):
        return readable
    if readable.value.status != 0:
        return Unknown("FragmentFailed", clean(readable.value.err.decode("utf-8", "replace")))
    try:
        return Value(json.loads(readable.value.out))
    except (ValueError, RecursionError):
        return Unknown("NotJson")


def file_text(raw: Raw | None) -> Fact[str]:
    """Content of a file; Absent(NoSuchFile) where it is not there."""
    found = _readable(raw, "NoSuchFile")
    return Value(found.value.out.decode("utf-8", "replace")) if isinstance(found, Value) else found
