"""The static host name: /etc/hostname, and what the kernel answers to."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Fact, Facts, Probe, Raw, Read, Unknown, Value

KEY = "hostname"
PROBE = Probe(KEY, (Read("/etc/hostname", limit=4096), Read("/proc/sys/kernel/hostname", limit=4096)))


@dataclass(frozen=True, slots=True)
class HostName:
    """`static`: what it is called after its next boot; `running`: what it is called now."""

    static: Fact[str]
    running: Fact[str]


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


def parse(raws: tuple[Raw, ...]) -> Fact[HostName]:
    on_disk, in_kernel = raws
    return Value(HostName(parse_static(raw.file_text(on_disk)), parse_static(raw.file_text(in_kernel))))


FACT = LiveFact(KEY, lambda about: PROBE.parts, parse)
