"""Whether a node's clock follows a time source, and who sees to it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from reconciler.facts import raw, services, time_sync
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Read, Run, Unknown, Value

DAEMONS = re.compile(r"chronyd?|systemd-timesyncd|ntpd?|ntpsec|openntpd|ptp4l(?:@.*)?|phc2sys(?:@.*)?")
# chronyc(1), sources: mode, state, name, stratum, poll, reach (octal)
_SOURCE = re.compile(r"([\^=#])([*+\-?x~ ])\s+(\S{1,255})\s+([0-9]{1,2})\s+(-?[0-9]{1,2})\s+([0-7]{1,3})\s")
_STATES = {"*": "selected", "+": "combined", "-": "not combined", "?": "unusable", "x": "wrong", "~": "variable", " ": "other"}
_HEADER = "MS Name/IP address"


@dataclass(frozen=True, slots=True)
class Source:
    """`reachable`: one of the last eight polls was answered."""

    name: str
    state: str
    stratum: int
    reachable: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """`tracking`, `sources`: chrony's. `daemons`: services that run and can set a clock.

    `timesyncd_followed`: systemd-timesyncd has set the clock since boot, which does not say that it still follows.
    """

    tracking: Fact[time_sync.Tracking]
    sources: Fact[tuple[Source, ...]]
    daemons: Fact[tuple[str, ...]]
    timesyncd_followed: Fact[bool]


def sources(text: str) -> Fact[tuple[Source, ...]]:
    """The table of `chronyc -n sources`. Unknown(NoTable) without its header: no row is no source only below it."""
    _, header, table = text.partition(_HEADER)
    if not header:
        return Unknown("NoTable", raw.clean(text[:400], 80))
    found = (_SOURCE.match(line[:1000] + " ") for line in table.splitlines())
    return Value(tuple(Source(row[3], _STATES[row[2]], int(row[4]), row[6].strip("0") != "") for row in found if row))


def parse(raws: tuple[Raw, ...]) -> Fact[Clock]:
    said, groups, mark = raws
    running = services.running(raw.fragment(groups))
    daemons: Fact[tuple[str, ...]] = running
    if isinstance(running, Value):
        daemons = Value(tuple(name for name in running.value if DAEMONS.fullmatch(name)))
    # chronyc says on its output why it has nothing to say, with a status that is not 0
    answered = raw.command_text(said)
    text = said.out.decode("utf-8", "replace") if not said.error else ""
    tracking: Fact[time_sync.Tracking]
    table: Fact[tuple[Source, ...]]
    if text:
        tracking, table = time_sync.parse(text), sources(text)
    else:
        tracking = table = Unknown("NothingListed", "chronyc") if isinstance(answered, Value) else answered
    return Value(Clock(tracking, table, daemons, _followed(daemons, raw.file_text(mark))))


def _followed(daemons: Fact[tuple[str, ...]], mark: Fact[str]) -> Fact[bool]:
    """systemd-timesyncd.service(8): it touches /run/systemd/timesync/synchronized at each step."""
    if isinstance(daemons, Value) and "systemd-timesyncd" not in daemons.value:
        return Absent("NotRunning")
    if isinstance(daemons, Value) and isinstance(mark, Value | Absent):
        return Value(isinstance(mark, Value))
    return mark if isinstance(mark, Unknown) else Unknown("NotSaid") if isinstance(daemons, Value) else daemons


def stable(value: Any) -> Any:
    """Whether it follows and who sees to it; no offsets."""
    tracking = value["tracking"]
    following = tracking.get("synced", tracking)
    return {"synced": following, "daemons": value["daemons"], "timesyncd_followed": value["timesyncd_followed"]}


FACT = LiveFact(
    "time-sync",
    lambda about: (
        # as nobody: as root chronyc makes a socket in /run/chrony for its answers
        Run(("chronyc", "-n", "-m", "tracking", "sources"), 8.0, unprivileged=True),
        Ask("devices", json.dumps({"groups": services.GROUPS, "limit": 1}), quick=True),
        Read("/run/systemd/timesync/synchronized", 4096),
    ),
    parse,
    stable,
)
