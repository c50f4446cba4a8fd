"""A saved kernel log, of any tool: the events about GPUs, PCI Express and the kernel itself, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.facts import kernel_event, kernel_json, kernel_trouble, raw, text
from reconciler.facts.kernel_event import NOT_SAID, Event
from reconciler.model.fact import Absent, Fact, Unknown, Value

# what a line of interest holds, the most telling first: a line is one event. Found by plain search: logs are large
NEEDLES = (
    ("Xid", "xid"),
    ("fallen off the bus", "gpu-lost"),
    ("RmInitAdapter failed", "init-failed"),
    ("rm_init_adapter failed", "init-failed"),
    ("probe routine failed", "probe-failed"),
    ("API mismatch", "api-mismatch"),
    ("loading NVIDIA UNIX", "driver-loaded"),
    ("NVRM: GPU at PCI:", "gpu-uuid"),
    ("Rate limiting GSP RPC", "rate-limited"),
    ("AER: ", "aer"),
    ("PCIe Bus Error:", "aer"),
    ("DPC: containment event", "dpc"),
    ("blocked for more than", "hung-task"),
    ("Kernel panic", "panic"),
    ("BUG: unable to handle", "oops"),
    ("Oops:", "oops"),
    *kernel_trouble.NEEDLES,
)
_KEPT = 1000  # events of one kind, GPU and code that are listed: a storm is one fault with many lines
_LOST = 79  # NVIDIA's Xid catalogue: GPU has fallen off the bus
_UUID = re.compile(r"\bGPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_RESET = re.compile(r"(?<![\w-])RST: (Yes|No)\b")
_RECOVERY = re.compile(r"recovery action changed from [^(\n]{0,20}\([^)\n]{0,40}\) to [^(\n]{0,20}\(([^)\n]{1,40})\)")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Versions of the driver's two halves, as its kernel module tells them."""

    client: Fact[str]
    module: Fact[str]


@dataclass(frozen=True, slots=True)
class Log:
    """All events of a log (at most 1000 of one kind, of an Xid one GPU and code; `unlisted` counts the rest) and what they come to.

    `codes`: Xid numbers, one for each GPU and number, in order. `xid_lines`: lines by Xid number, repetitions included.
    `buses`: domain:bus:device that Xids name. `lost`: PCI addresses of GPUs that are gone, with or without an Xid. `minors`: device
    minor numbers that could not be initialised. `driver`: the version last loaded. `reset_required`: what contained or
    uncontained errors say (`RST: Yes`). `recovery`: bus -> action that Xid 154 asks for last. `uuids`: bus -> GPU UUID.
    """

    lines: int
    events: tuple[Event, ...]
    unlisted: int
    codes: tuple[int, ...]
    xid_lines: Mapping[int, int]
    buses: tuple[str, ...]
    processes: tuple[str, ...]
    pids: tuple[int, ...]
    lost: tuple[str, ...]
    minors: tuple[int, ...]
    probe_failed: Fact[int]
    driver: Fact[str]
    mismatch: Fact[Mismatch]
    reset_required: Fact[bool]
    recovery: Mapping[str, str]
    uuids: Mapping[str, str]
    rate_limited: bool
    hung_task: bool
    crashed: bool


def parse(output: str) -> Fact[Log]:
    """Every line counts on its own: damage to one loses no other. Unknown where the text is no log or the log could not be read."""
    log = kernel_json.lines(text.clean(output))
    if not log.strip():
        return Unknown("Empty")
    events, lines_of, unlisted = _events(log)
    if not events:
        head = log[:20000].split("\n")[:200]
        if any("-- No entries --" in line for line in head):
            return Absent("NoEntries")
        if any("read kernel buffer failed" in line or "Operation not permitted" in line for line in head):
            return Unknown("PermissionDenied", raw.clean(log[:300]))
        if not any(kernel_event.prefix(line).end for line in head):
            return Unknown("NotAKernelLog", raw.clean(log[:300]))
    return Value(_summary(log, events, lines_of, unlisted))


def _hits(log: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each line with a needle, in order."""
    kinds: dict[int, tuple[int, str]] = {}
    for needle, kind in NEEDLES:
        at = log.find(needle)
        while at >= 0:
            end = log.find("\n", at)
            end = len(log) if end < 0 else end
            kinds.setdefault(log.rfind("\n", 0, at) + 1, (end, kind))
            at = log.find(needle, end)
    for start in sorted(kinds):
        yield start, *kinds[start]


def _events(log: str) -> tuple[list[Event], dict[int, int], int]:
    """Events, lines by Xid number, and how many events are not listed."""
    events: list[Event] = []
    lines_of: dict[int, int] = {}
    seen: dict[tuple[str, ...], int] = {}
    number, counted, unlisted = 1, 0, 0
    for start, end, kind in _hits(log):
        number += log.count("\n", counted, start)
        counted = start
        line = log[start:end]
        key: tuple[str, ...] = (kind,)
        head = None
        if kind == "xid":
            if "NVRM" not in line and "SXid" not in line:
                continue
            if head := kernel_event.xid_head(line):
                key = head.groups()
                if not key[0]:
                    code = int(key[2])
                    lines_of[code] = lines_of.get(code, 0) + 1
        count = seen[key] = seen.get(key, 0) + 1
        if count > _KEPT:
            unlisted += 1
        elif event := kernel_event.read_xid(line, number, head) if kind == "xid" else _other(log, start, end, kind, number):
            events.append(event)
    return events, lines_of, unlisted


def _other(log: str, start: int, end: int, kind: str, number: int) -> Event | None:
    """An event that is no Xid, read with up to 300 characters before and after: some messages are several lines long."""
    return kernel_event.read(kind, log[start:end], number, log[max(start - 300, 0) : min(end, start + 2000) + 300])


def _known(facts: Iterator[Fact[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.value for fact in facts if isinstance(fact, Value)))


def _numbers(facts: Iterator[Fact[int]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(fact.value for fact in facts if isinstance(fact, Value)))


def _summary(log: str, events: list[Event], lines_of: dict[int, int], unlisted: int) -> Log:
    xids = [event for event in events if event.kind == "xid"]
    lost = (event.bus for event in events if event.kind == "gpu-lost" or (event.kind == "xid" and event.code == Value(_LOST)))
    pairs = dict.fromkeys((event.bus, event.code.value) for event in xids if isinstance(event.code, Value))
    kinds = {event.kind for event in events}
    return Log(
        lines=log.count("\n") + (not log.endswith("\n")),
        events=tuple(events),
        unlisted=unlisted,
        codes=tuple(code for _, code in pairs),
        xid_lines=lines_of,
        buses=_known(event.bus for event in xids),
        processes=_known(event.process for event in xids),
        pids=_numbers(event.pid for event in xids),
        lost=tuple(f"{bus}.0" for bus in _known(lost)),  # a GPU is always function 0 of its device
        minors=_numbers(event.number for event in events if event.kind == "init-failed"),
        probe_failed=_last(events, "probe-failed"),
        driver=_driver(events),
        mismatch=_mismatch(events),
        reset_required=_reset(xids),
        recovery=_recovery(xids),
        uuids=_uuids(events),
        rate_limited="rate-limited" in kinds,
        hung_task="hung-task" in kinds,
        crashed=bool(kinds & {"panic", "oops"}),
    )


def _last(events: list[Event], kind: str) -> Fact[int]:
    return next((event.number for event in reversed(events) if event.kind == kind), NOT_SAID)


def _driver(events: list[Event]) -> Fact[str]:
    versions = [event.versions[0] for event in events if event.kind == "driver-loaded" and event.versions]
    return Value(versions[-1]) if versions else NOT_SAID


def _mismatch(events: list[Event]) -> Fact[Mismatch]:
    for event in reversed(events):
        if event.kind == "api-mismatch":
            said = [Value(version) for version in event.versions]
            return Value(Mismatch(said[0] if said else NOT_SAID, said[1] if len(said) > 1 else NOT_SAID))
    return NOT_SAID


def _reset(xids: list[Event]) -> Fact[bool]:
    """RST of the Xids that tell it; the recovery action that Xid 154 names outweighs a No."""
    said = {found[1] for event in xids if (found := _RESET.search(event.message))}
    if any("Reset" in action or "Reboot" in action for action in _recovery(xids).values()):
        return Value(True)
    return Value("Yes" in said) if said else NOT_SAID


def _recovery(xids: list[Event]) -> dict[str, str]:
    found = ((event.bus, _RECOVERY.search(event.message)) for event in xids)
    return {bus.value: action[1] for bus, action in found if isinstance(bus, Value) and action}


def _uuids(events: list[Event]) -> dict[str, str]:
    found = ((event.bus, _UUID.search(event.message)) for event in events if event.kind == "gpu-uuid")
    return {bus.value: uuid[0] for bus, uuid in found if isinstance(bus, Value) and uuid}
