"""For which resource, and to what end, this tool restarted a node: the node program's own note of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Facts, Probe, Read, Unknown, Value

KEY = "reboots"
PROBE = Probe(KEY, (Read("/var/lib/reconcile/reboots.json"),))
VERSION = 1


@dataclass(frozen=True, slots=True)
class Rebooted:
    """A reboot that a resource was to gain by. `wanted`: what it was to bring; `over`: the node has started anew since."""

    wanted: str
    over: bool


def parse(text: Fact[str], boot_id: str) -> Fact[dict[str, Rebooted]]:
    """By resource, the latest each."""
    if isinstance(text, Absent):
        return Value({})
    if not isinstance(text, Value):
        return text
    try:
        found = json.loads(text.value)
        if found["version"] > VERSION:
            return Unknown("NotesUnreadable", f"version {found['version']}"[:80])
        notes = {str(name): (str(note["wanted"]), str(note["boot_id"])) for name, note in found["reboots"].items()}
        return Value({name: Rebooted(wanted, boot != boot_id) for name, (wanted, boot) in notes.items()})
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        return Unknown("NotesUnreadable", type(e).__name__)


def noted(facts: Facts) -> Fact[dict[str, Rebooted]]:
    """Every reboot of ours that the node remembers."""
    reading = facts.readings.get(KEY)
    return parse(raw.file_text(raw.part(facts, KEY)), reading.boot_id if reading else "")
