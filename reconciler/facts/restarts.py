"""Which units were running when a file of theirs was written: the node program's own note of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.facts import raw
from reconciler.facts.notes import read
from reconciler.model.fact import Fact, Facts, Probe, Read

KEY = "restarts"
PATH = "/var/lib/reconcile/restarts.json"
PROBE = Probe(KEY, (Read(PATH),))


@dataclass(frozen=True, slots=True)
class Written:
    """The file of a unit that was written last, and when: microseconds of the node's monotonic clock."""

    path: str
    at: int


def parse(text: Fact[str], boot_id: str) -> Fact[dict[str, Written]]:
    """By unit. What was noted before the node's last boot counts no more: every unit was started since."""

    def understand(found: Any) -> dict[str, Written]:
        if str(found["boot_id"]) != boot_id:
            return {}
        return {str(name): Written(str(note["path"]), int(note["at"])) for name, note in found["units"].items()}

    return read(text, understand)


def notes(facts: Facts) -> Fact[dict[str, Written]]:
    """Every note of this boot."""
    reading = facts.readings.get(KEY)
    return parse(raw.file_text(raw.part(facts, KEY)), reading.boot_id if reading else "")
