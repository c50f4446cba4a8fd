"""For which resource, and to what end, this tool restarted a node: the node program's own note of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.facts import notes, raw
from reconciler.model.fact import Fact, Facts, Probe, Read

KEY = "reboots"
PROBE = Probe(KEY, (Read("/var/lib/reconcile/reboots.json"),))


@dataclass(frozen=True, slots=True)
class Rebooted:
    """A reboot that a resource was to gain by. `wanted`: what it was to bring; `over`: the node has started anew since."""

    wanted: str
    over: bool


def parse(text: Fact[str], boot_id: str) -> Fact[dict[str, Rebooted]]:
    """By resource, the latest each."""

    def understand(found: Any) -> dict[str, Rebooted]:
        return {str(n): Rebooted(str(note["wanted"]), str(note["boot_id"]) != boot_id) for n, note in found["reboots"].items()}

    return notes.read(text, understand)


def noted(facts: Facts) -> Fact[dict[str, Rebooted]]:
    """Every reboot of ours that the node remembers."""
    reading = facts.readings.get(KEY)
    return parse(raw.file_text(raw.part(facts, KEY)), reading.boot_id if reading else "")
