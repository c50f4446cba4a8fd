"""What the kernel of a running node said in this boot about GPUs and the host; each look reads on from where the last one ended."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import given, kernel_event, kernel_log, raw
from reconciler.facts.kernel_event import Event
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Ask, Fact, Part, Raw, Unknown, Value

NAME = "kernel-log"
_SECONDS, _MARGIN = 17, 3  # for reading, and for what comes before and after: 20 s together
_MOST = 200  # lines of one key that a node sends, first and last each
_LISTED = 2000  # events that are kept of one boot, first and last each
# one fault of one GPU is one key: a storm of it hides no other. NVRM: a message may go on in lines without a word of interest
_KEY = r"S?Xid \((?:PCI:)?[0-9a-fA-F:.]{4,20}[^)\n]{0,40}\): \d{1,6}"
_NEEDLES = tuple(dict.fromkeys([needle for needle, _ in kernel_log.NEEDLES] + ["NVRM:"]))
_CODE = re.compile(r"Xid \(([^)\n]{1,80})\): (\d{1,6})\Z")
_TRIED = (("denied", "PermissionDenied"), ("deadline", "DeadlinePassed"))


@dataclass(frozen=True, slots=True)
class KernelLog:
    """`source`: journal, kmsg, dmesg or syslog; `tried`: why those before it were not taken.

    `events`: in order, at most 4000 of a boot; `unlisted`: lines of interest that storms hide. `kinds`: listed events by kind.
    `xids`: PCI bus -> Xid number -> lines, all of them. `lost`: PCI addresses of GPUs that are gone, with or without an Xid.
    `recovery`: bus -> what Xid 154 asks for last. `whole`: nothing is missing from the beginning of the boot to `cursor`,
    where the next look begins; `more`: the time was over before the end. `continued`: only what is new since the last cursor was
    read now; `again` says why a cursor could not be used.
    """

    source: str
    events: tuple[Event, ...]
    kinds: Mapping[str, int]
    xids: Mapping[str, Mapping[str, int]]
    lost: tuple[str, ...]
    recovery: Mapping[str, str]
    unlisted: int
    whole: Fact[bool]
    more: Fact[bool]
    continued: bool
    again: str
    cursor: Fact[str]
    tried: Mapping[str, str]


def parts(about: About) -> tuple[Part, ...]:
    arguments = {
        "needles": _NEEDLES,
        "key": _KEY,
        "most": _MOST,
        "seconds": _SECONDS,
        "cursor": about.cursors.get(NAME, ""),
    }
    return (Ask("kernel_log", json.dumps(arguments, sort_keys=True), float(_SECONDS + _MARGIN)),)


def parse(raws: tuple[Raw, ...]) -> Fact[KernelLog]:
    """Unknown where no source could be read: PermissionDenied where one of them was closed to us."""
    said = raw.fragment(raws[0])
    if not isinstance(said, Value):
        return said
    if not isinstance(said.value, Mapping):
        return given.WRONG
    answer = said.value
    source = given.text(answer, "source")
    tried = {raw.clean(str(name), 40): raw.clean(str(why)) for name, why in list(given.mapping(answer, "tried").items())[:8]}
    if not isinstance(source, Value):
        why = next((why for code, why in _TRIED if code in tried.values()), "NoKernelLog")
        return Unknown(why, "; ".join(f"{name}: {said}" for name, said in tried.items()))
    lines = given.texts(answer, "lines")
    return _known(answer, source.value, lines.value, tried) if isinstance(lines, Value) else lines


def _known(answer: Mapping[str, Any], source: str, lines: tuple[str, ...], tried: Mapping[str, str]) -> Fact[KernelLog]:
    log = kernel_log.parse("\n".join(lines) + "\n")
    found = log.value if isinstance(log, Value) else None  # not one event in lines of interest
    events = found.events if found else ()
    counts = {key: count for key, count in given.mapping(answer, "counts").items() if type(count) is int}
    again = given.text(answer, "again")
    return Value(
        KernelLog(
            source=raw.clean(source, 40),
            events=tuple(dataclasses.replace(event, line=number) for number, event in enumerate(events, start=1)),
            kinds=dict(sorted(Counter(event.kind for event in events).items())),
            xids=_xids(counts),
            lost=found.lost if found else (),
            recovery=found.recovery if found else {},
            unlisted=max(0, sum(counts.values()) - len(lines)) + (found.unlisted if found else 0),
            whole=given.flag(answer, "whole"),
            more=given.flag(answer, "more"),
            continued=answer.get("continued") is True,
            again=raw.clean(again.value, 40) if isinstance(again, Value) else "",
            cursor=given.text(answer, "cursor", "NoCursor"),
            tried=tried,
        )
    )


def _xids(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Lines by bus and number; a bus that cannot be read stands as it was printed."""
    lines: dict[str, dict[str, int]] = {}
    for key, count in sorted(counts.items()):
        if not key.startswith("SXid") and (head := _CODE.search(key)):
            bus = kernel_event.address(head[1].removeprefix("PCI:").split(" ")[0].rstrip(","))
            of = lines.setdefault(bus.value if isinstance(bus, Value) else raw.clean(head[1], 40), {})
            of[head[2]] = of.get(head[2], 0) + count
    return lines


def merge(before: Any, now: Any) -> Any:
    """What was known of this boot and what is new since then, as plain values. What did not continue stands for itself."""
    if not now["continued"] or set(before) != set(now):  # another boot or source; or kept by another version
        return now
    events = [*before["events"], *now["events"]]
    over = max(0, len(events) - 2 * _LISTED)
    kept = events if not over else [*events[:_LISTED], *events[-_LISTED:]]
    return {
        **now,
        "events": [{**event, "line": number} for number, event in enumerate(kept, start=1)],
        "kinds": dict(sorted((Counter(before["kinds"]) + Counter(now["kinds"])).items())),
        "xids": _added(before["xids"], now["xids"]),
        "lost": list(dict.fromkeys([*before["lost"], *now["lost"]])),
        "recovery": {**before["recovery"], **now["recovery"]},
        "unlisted": before["unlisted"] + now["unlisted"] + over,
        "whole": now["whole"] if before["whole"] is True else before["whole"],
    }


def _added(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    buses = dict.fromkeys([*before, *now])
    return {bus: dict(Counter(before.get(bus, {})) + Counter(now.get(bus, {}))) for bus in buses}


def stable(value: Any) -> Any:
    """Which faults there were, without how often and when."""
    return {
        "kinds": sorted(value["kinds"]),
        "xids": {bus: sorted(codes, key=int) for bus, codes in sorted(value["xids"].items())},
        "lost": sorted(value["lost"]),
    }


FACT = LiveFact(NAME, parts, parse, stable, slow=True, merge=merge)
