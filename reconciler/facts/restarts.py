"""Which units were running when a file of theirs was written: the node program's own note of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Facts, Probe, Read, Unknown, Value

KEY = "restarts"
PATH = "/var/lib/reconcile/restarts.json"
PROBE = Probe(KEY, (Read(PATH),))
VERSION = 1


@dataclass(frozen=True, slots=True)
class Written:
    """The file of a unit that was written last, and when: microseconds of the node's monotonic clock."""

    path: str
    at: int


def parse(text: Fact[str], boot_id: str) -> Fact[dict[str, Written]]:
    """By unit. What was noted before the node's last boot counts no more: every unit was started since."""
    if isinstance(text, Absent):
        return Value({})
    if not isinstance(text, Value):
        return text
    try:
        found = json.loads(text.value)
        if found["version"] > VERSION:
            return Unknown("NotesUnreadable", f"version {found['version']}"[:80])
        if str(found["boot_id"]) != boot_id:
            return Value({})
        return Value({str(name): Written(str(note["path"]), int(note["at"])) for name, note in found["units"].items()})
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        return Unknown("NotesUnreadable", type(e).__name__)


def notes(facts: Facts) -> Fact[dict[str, Written]]:
    """Every note of this boot."""
    reading = facts.readings.get(KEY)
    return parse(raw.file_text(raw.part(facts, KEY)), reading.boot_id if reading else "")
