"""One path on a node: what stands there, whose it is, and the digest of its content."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Facts, Probe, Stat, Unknown, Value

_TYPES = ("file", "directory", "link", "special", "none")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path. `sha256` is empty where it was not read: it is no regular file, or far too large for a managed one."""

    type: str
    mode: int
    owner: str
    group: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Place:
    """A path and what writing there needs: the owner and group asked for, and that the nearest parent is a directory."""

    entry: Entry | None
    owner_exists: bool
    group_exists: bool
    parent_is_directory: bool


def probe(path: str, owner: str, group: str) -> Probe:
    return Probe(f"file:{path}", (Stat(path, owner, group),))


def parse(text: Fact[str]) -> Fact[Place]:
    """The node program's answer to a Stat."""
    if isinstance(text, Absent):
        return Unknown("NotReadable", text.reason)
    if not isinstance(text, Value):
        return text
    try:
        found = json.loads(text.value)
        if found["type"] not in _TYPES:
            return Unknown("WrongShape", raw.clean(text.value, 80))
        entry = None
        if found["type"] != "none":
            entry = Entry(
                str(found["type"]),
                int(found["mode"]),
                str(found["owner"]),
                str(found["group"]),
                int(found["size"]),
                str(found.get("sha256", "")),
            )
        parent = found["parent"] == "directory"
        return Value(Place(entry, bool(found["owner_exists"]), bool(found["group_exists"]), parent))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        return Unknown("WrongShape", type(e).__name__)


def place(facts: Facts, path: str) -> Fact[Place]:
    """What was found at `path`."""
    return parse(raw.file_text(raw.part(facts, f"file:{path}")))
