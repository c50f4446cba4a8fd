"""Network interfaces: `ip link`, `ip -s link`, `ip -d -s link`, `ip addr`, and the same as JSON (`ip -j`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.facts import keyed, raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_HEAD = re.compile(r"([0-9]{1,9}): ([^\s@:]{1,64})(?:@([^\s:]{1,64}))?:(?: <([^>\n]{0,400})>)?")
_TAGGED = re.compile(r"\s*(?:[0-9]{1,6}: +[0-9]{1,9}: |\[|\()")
_ADDRESS = re.compile(r"link/(\S{1,32})(?: ([0-9a-f.:]{7,59})(?= |\Z))?")
_COUNTERS = re.compile(r"(RX|TX)(?: errors)?:")
# `ip -br link`: name, state, address, flags
_BRIEF = re.compile(r"([^\s@:]{1,64})(?:@(\S{1,64}))? +([A-Z]{2,16}) +(?:([0-9a-f.:]{7,59}) +)?<([^>\n]{0,400})>\s*\Z")
_KEYS = frozenset({"mtu", "qdisc", "master", "state", "mode", "group", "qlen"})
# RFC 2863 operational states, as iproute2 prints them
_STATES = frozenset({"UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"})
# JSON names of the counters that the text calls otherwise
_NAMES = {"over_errors": "overrun", "multicast": "mcast", "carrier_errors": "carrier", "collisions": "collsns"}


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface. `state`: the operational state; UNKNOWN is what drivers without one print (lo), not a fault.

    `carrier`: LOWER_UP or NO-CARRIER among the flags. `parent`: what it stands on (`bond1.57@bond1`). `rx`, `tx`: counters by the
    names of the text (bytes, packets, errors, dropped, ...), since the interface came up; Unknown(Missing) without -s.
    """

    index: Fact[int]
    flags: Fact[tuple[str, ...]]
    state: Fact[str]
    carrier: Fact[bool]
    mtu_bytes: Fact[int]
    master: Fact[str]
    parent: Fact[str]
    link_type: Fact[str]
    address: Fact[str]
    alt_names: tuple[str, ...]
    rx: Fact[Mapping[str, Fact[int]]]
    tx: Fact[Mapping[str, Fact[int]]]


@dataclass(frozen=True, slots=True)
class Interfaces:
    """All interfaces by name. `down`: in a known state that carries nothing, neither UP nor UNKNOWN. `cut`: JSON without its end.

    `strange_lines`: neither an interface nor a detail of one, such as `Message truncated`.
    """

    interfaces: Mapping[str, Interface]
    names: tuple[str, ...]
    states: Mapping[str, Fact[str]]
    mtus_bytes: Mapping[str, Fact[int]]
    down: tuple[str, ...]
    strange_lines: int
    cut: bool


@dataclass(slots=True)
class _Block:
    """An interface as read: what its first line holds, link line, alternative names, counters."""

    index: str
    flags: str | None
    said: dict[str, str]
    parent: str | None
    link: re.Match[str] | None = None
    alt_names: list[str] = field(default_factory=list)
    counters: dict[str, dict[str, Fact[int]]] = field(default_factory=dict)
    columns: tuple[str, list[str]] | None = None


def parse(output: str) -> Fact[Interfaces]:
    """Every interface of the text. Absent(NoSuchDevice) where ip says so of the one that it was asked for."""
    content = _plain(output)
    answer = keyed.objects(content)
    if answer:
        found = {str(item["ifname"])[:64]: _from_json(item) for item in answer[0] if item.get("ifname")}
        strange, cut = 0, answer[1]
    else:
        lines = _sure(content.split("\n"))
        blocks, strange = _blocks(lines)
        found, cut = {name: _from_text(block) for name, block in blocks.items()}, False
        if not found:
            brief = [_BRIEF.match(line) for line in lines if line.strip()]
            found, strange = {told[1]: _from_brief(told) for told in brief if told}, brief.count(None)
    if not found:
        if re.search(r'Device "[^"\n]{1,64}" does not exist', content[:1000]):
            return Absent("NoSuchDevice")
        return Unknown("NoInterfaces", raw.clean(output[:1000]))
    return Value(
        Interfaces(
            interfaces=found,
            names=tuple(found),
            states={name: each.state for name, each in found.items()},
            mtus_bytes={name: each.mtu_bytes for name, each in found.items()},
            down=tuple(
                name for name, each in found.items() if isinstance(each.state, Value) and each.state.value not in ("UP", "UNKNOWN")
            ),
            strange_lines=strange,
            cut=cut,
        )
    )


def _plain(output: str) -> str:
    """The pre-pass, but an interface's index is no launcher's tag; and -o's one line an interface as several."""
    lines = text.lines(output)
    if _TAGGED.match("\n".join(lines[:20]).lstrip()):
        lines = text.untagged(lines)
    content = "\n".join(lines)
    return content.replace("\\ ", "\n ")


def _sure(lines: list[str]) -> list[str]:
    """Without the last word of a line that has no end: `mtu 15` of 1500."""
    return [*lines[:-1], lines[-1].rpartition(" ")[0]]


def _blocks(lines: list[str]) -> tuple[dict[str, _Block], int]:
    blocks: dict[str, _Block] = {}
    block: _Block | None = None
    strange = 0
    for line in lines:
        if found := _HEAD.match(line):
            index, name, parent, flags = found.groups()
            block = _Block(index, flags, keyed.pairs(line[found.end() :], _KEYS), parent)
            blocks.setdefault(name, block)
        elif block and line[:1].isspace():
            _detail(block, line.strip())
        elif line.strip():
            strange += 1
    return blocks, strange


def _detail(block: _Block, line: str) -> None:
    """A line below an interface: what is not known is left alone."""
    if block.columns:
        (way, names), block.columns = block.columns, None
        values = line.split()
        into = block.counters.setdefault(way, {})
        for at, name in enumerate(names):
            into.setdefault(name, _counter(values[at]) if at < len(values) else keyed.MISSING)
    elif found := _COUNTERS.match(line):
        block.columns = (found[1], line[found.end() :].split()[:16])
    elif not block.link and (found := _ADDRESS.match(line)):
        block.link = found
    elif line.startswith("altname "):
        block.alt_names.append(line[8:72].strip())


def _counter(cell: str) -> Fact[int]:
    if cell.isascii() and cell.isdigit() and len(cell) <= 20:  # 64 bits
        return Value(int(cell))
    return Unknown("NotANumber", raw.clean(cell, 40))


def _state(said: Fact[str]) -> Fact[str]:
    if isinstance(said, Value) and said.value not in _STATES:
        return Unknown("UnreadableState", raw.clean(said.value, 40))
    return said


def _carrier(flags: Fact[tuple[str, ...]]) -> Fact[bool]:
    if not isinstance(flags, Value):
        return flags
    if "LOWER_UP" in flags.value:
        return Value(True)
    return Value(False) if "NO-CARRIER" in flags.value else Unknown("NotSaid")


def _from_text(block: _Block) -> Interface:
    said = block.said
    flags: Fact[tuple[str, ...]] = keyed.MISSING if block.flags is None else Value(tuple(block.flags.split(",")))
    # something follows the MTU on every whole line
    mtu = keyed.number(said, "mtu") if len(said) > 1 or "mtu" not in said else Unknown("MayBeCut", raw.clean(said["mtu"], 40))
    none = Absent("None") if "state" in said else keyed.MISSING
    return Interface(
        index=_counter(block.index),
        flags=flags,
        state=_state(keyed.word(said, "state")),
        carrier=_carrier(flags),
        mtu_bytes=mtu,
        master=Value(said["master"]) if "master" in said else none,
        parent=Value(block.parent) if block.parent else Absent("None"),
        link_type=Value(block.link[1]) if block.link else keyed.MISSING,
        address=Value(block.link[2]) if block.link and block.link[2] else keyed.MISSING,
        alt_names=tuple(block.alt_names),
        rx=Value(block.counters["RX"]) if block.counters.get("RX") else keyed.MISSING,
        tx=Value(block.counters["TX"]) if block.counters.get("TX") else keyed.MISSING,
    )


def _from_brief(told: re.Match[str]) -> Interface:
    flags: Fact[tuple[str, ...]] = Value(tuple(told[5].split(",")))
    return Interface(
        index=keyed.MISSING,
        flags=flags,
        state=_state(Value(told[3])),
        carrier=_carrier(flags),
        mtu_bytes=keyed.MISSING,
        master=keyed.MISSING,
        parent=Value(told[2]) if told[2] else Absent("None"),
        link_type=keyed.MISSING,
        address=Value(told[4]) if told[4] else keyed.MISSING,
        alt_names=(),
        rx=keyed.MISSING,
        tx=keyed.MISSING,
    )


def _from_json(item: Mapping[str, Any]) -> Interface:
    flags = keyed.member(item, "flags", list)
    names: Fact[tuple[str, ...]] = Value(tuple(str(flag)[:40] for flag in flags.value)) if isinstance(flags, Value) else flags
    master, parent, others = keyed.member(item, "master", str), keyed.member(item, "link", str), item.get("altnames")
    stats = item.get("stats64") or item.get("stats")
    ways = stats if isinstance(stats, dict) else {}
    return Interface(
        index=keyed.member(item, "ifindex", int),
        flags=names,
        state=_state(keyed.member(item, "operstate", str)),
        carrier=_carrier(names),
        mtu_bytes=keyed.member(item, "mtu", int),
        master=master if "master" in item else Absent("None"),
        parent=parent if "link" in item else Absent("None"),
        link_type=keyed.member(item, "link_type", str),
        address=keyed.member(item, "address", str),
        alt_names=tuple(str(name)[:64] for name in others) if isinstance(others, list) else (),
        rx=_json_counters(ways.get("rx")),
        tx=_json_counters(ways.get("tx")),
    )


def _json_counters(found: Any) -> Fact[Mapping[str, Fact[int]]]:
    if not isinstance(found, dict) or not found:
        return keyed.MISSING
    return Value({_NAMES.get(str(name), str(name)): keyed.member(found, name, int) for name in found})
