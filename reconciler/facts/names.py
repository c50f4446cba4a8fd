"""How a node itself resolves the declared names and its own: by NSS, and what /etc/hosts says of them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, hostname, raw
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Read, Unknown, Value

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Name:
    """One name. `addresses` in the order of the resolver; Absent(NotResolved) where it says that there is no such name.

    `loopback`: whether any of them is this machine's own loopback. `hosts`: the addresses that /etc/hosts gives it, one for each
    line, so that a name on two lines has two.
    """

    addresses: Fact[tuple[str, ...]]
    loopback: Fact[bool]
    hosts: Fact[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Names:
    """`own`: what the kernel calls this node; `names`: the declared ones, with that under which the node itself is declared."""

    own: Fact[str]
    names: dict[str, Name]


def parts(about: About) -> tuple[Part, ...]:
    wanted = json.dumps({"names": sorted({*about.names, about.node} - {""}), "seconds": SECONDS}, sort_keys=True)
    return Ask("resolve", wanted, SECONDS + 5), Read("/proc/sys/kernel/hostname", 4096), Read("/etc/hosts", 1 << 20)


def addresses(said: Any) -> Fact[tuple[str, ...]]:
    """A fragment's list of addresses, or why there is none."""
    if isinstance(said, list):
        if said and all(isinstance(item, str) and _is_address(item) for item in said):
            return Value(tuple(said))
        return Unknown("UnreadableAddress", raw.clean(repr(said)[:200], 80))
    code = answers.mapping(said).get("error")
    if code == "none":
        return Absent("NotResolved")
    return Unknown("ResolverFailed", "try again later") if code == "again" else answers.error(said)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _loopback(found: Fact[tuple[str, ...]]) -> Fact[bool]:
    if not isinstance(found, Value):
        return found
    return Value(any(ipaddress.ip_address(text).is_loopback for text in found.value))


def hosts(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """hosts(5): an address and its names in lower case, line by line; what is behind a # does not count."""
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return [(row[0], tuple(name.lower() for name in row[1:])) for row in rows if len(row) > 1 and _is_address(row[0])]


def _said(name: str, lines: Fact[Sequence[tuple[str, tuple[str, ...]]]]) -> Fact[tuple[str, ...]]:
    if not isinstance(lines, Value):
        return lines
    found = tuple(address for address, names in lines.value if name.lower() in names)
    return Value(found) if found else Absent("NotInHosts")


def parse(raws: tuple[Raw, ...]) -> Fact[Names]:
    answer, kernel, file = raws
    found = raw.fragment(answer)
    if not isinstance(found, Value):
        return found
    if not isinstance(found.value, dict):
        return Unknown("WrongShape", "names")
    read = raw.file_text(file)
    lines: Fact[Sequence[tuple[str, tuple[str, ...]]]] = Value(hosts(read.value)) if isinstance(read, Value) else read
    names = {}
    for name, said in found.value.items():
        resolved = addresses(said)
        names[name] = Name(resolved, _loopback(resolved), _said(name, lines))
    return Value(Names(hostname.parse_static(raw.file_text(kernel)), names))


FACT = LiveFact("names", parts, parse)
