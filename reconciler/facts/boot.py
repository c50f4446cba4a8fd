"""Which boot of the node this is, and when it began."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Fact, Raw, Read, Unknown, Value

_BOOT_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_BEGAN = re.compile(r"^btime ([0-9]{1,12})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Boot:
    """`id`: random_boot_id of random(4). `began`: Unix seconds by the node's clock, which moves when that clock is set."""

    id: Fact[str]
    began: Fact[int]


def parse_id(text: Fact[str]) -> Fact[str]:
    if not isinstance(text, Value):
        return text
    found = text.value.strip()
    return Value(found) if _BOOT_ID.fullmatch(found) else Unknown("NotABootId", raw.clean(found, 80))


def parse_began(text: Fact[str]) -> Fact[int]:
    """The line `btime` of /proc/stat, as proc(5) says."""
    if not isinstance(text, Value):
        return text
    found = _BEGAN.search(text.value)
    return Value(int(found[1])) if found else Unknown("Missing", "btime")


def parse(raws: tuple[Raw, ...]) -> Fact[Boot]:
    identity, stat = raws
    return Value(Boot(parse_id(raw.file_text(identity)), parse_began(raw.file_text(stat))))


FACT = LiveFact(
    "boot",
    lambda about: (Read("/proc/sys/kernel/random/boot_id", 64), Read("/proc/stat", 1 << 20)),
    parse,
    stable=lambda value: {"id": value["id"]},
)
