"""The static host name: /etc/hostname, and what the kernel answers to."""

from __future__ import annotations

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Facts, Probe, Read, Unknown, Value

KEY = "hostname"
PROBE = Probe(KEY, (Read("/etc/hostname", limit=4096), Read("/proc/sys/kernel/hostname", limit=4096)))


def parse_static(text: Fact[str]) -> Fact[str]:
    """hostname(5): one name; comment lines and blank lines do not count, and with nothing else there is no name."""
    if not isinstance(text, Value):
        return text
    names = [line.strip() for line in text.value.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not names:
        return Absent("NoName")
    if len(names) > 1:
        return Unknown("NotOneName", raw.clean(text.value, 80))
    return Value(names[0])


def static(facts: Facts) -> Fact[str]:
    """What the node is called after its next boot."""
    return parse_static(raw.file_text(raw.part(facts, KEY, 0)))


def running(facts: Facts) -> Fact[str]:
    """What the node is called now."""
    return parse_static(raw.file_text(raw.part(facts, KEY, 1)))
