"""Host lists in Slurm's form: `gpu[001-040,050]`, as names of nodes and, counted in parallel, in addresses."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

MAX_HOSTS = 10_000  # nodes that one list, and one cluster, may stand for: keeps `gpu[1-999999]` from filling the memory
_MAX_TEXT = 1024
_PART = re.compile(r"([^\[\],\s]*)(?:\[([0-9,-]+)\]([^\[\],\s]*))?")
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NODE = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)
_MAX_NODE = 63  # Linux' HOST_NAME_MAX is 64, one label of DNS is 63
_MAX_HOST = 253  # RFC 1035: 255 octets with the length bytes


class HostListError(ValueError):
    """A host list that stands for no hosts. `code` says why; `piece` is the part of it that is wrong."""

    def __init__(self, code: str, piece: str) -> None:
        super().__init__(code)
        self.code, self.piece = code, piece


@dataclass(frozen=True, slots=True)
class Span:
    """`prefix`, the numbers from `low` to `high` padded to `width` digits, `suffix`; `width` 0: the prefix alone."""

    prefix: str
    low: int = 0
    high: int = 0
    width: int = 0
    suffix: str = ""

    def text(self, number: int) -> str:
        """One host of the span."""
        return f"{self.prefix}{number:0{self.width}d}{self.suffix}" if self.width else self.prefix


def parse(hosts: str) -> tuple[Span, ...]:
    """The spans of a host list, unexpanded. Raises HostListError (`host-list`, `host-range`, `host-count`)."""
    if len(hosts) > _MAX_TEXT or not hosts:
        raise HostListError("host-list", hosts)
    spans: list[Span] = []
    for part in re.split(r",(?![^\[]*\])", hosts):
        found = _PART.fullmatch(part.strip(" "))
        if not found or not found[0]:
            raise HostListError("host-list", hosts)
        prefix, ranges, suffix = found.groups()
        spans += [Span(prefix)] if ranges is None else [_span(prefix, piece, suffix) for piece in ranges.split(",")]
    if sum(s.high - s.low + 1 for s in spans) > MAX_HOSTS:
        raise HostListError("host-count", hosts)
    return tuple(spans)


def _span(prefix: str, piece: str, suffix: str) -> Span:
    found = _RANGE.fullmatch(piece)
    if not found:
        raise HostListError("host-range", piece)
    low, high = found[1], found[2] or found[1]
    if int(high) < int(low):
        raise HostListError("host-range", piece)
    return Span(prefix, int(low), int(high), len(low), suffix)


def count(hosts: str) -> int:
    """How many hosts a valid list stands for, without making them."""
    return sum(s.high - s.low + 1 for s in parse(hosts))


def expand(hosts: str) -> tuple[str, ...]:
    """`gpu[001-003,007]` -> gpu001 gpu002 gpu003 gpu007, in the order written; at most MAX_HOSTS."""
    return tuple(span.text(n) for span in parse(hosts) for n in range(span.low, span.high + 1))


def ends(hosts: str) -> tuple[str, ...]:
    """First and last host of each span: enough for a check of names and addresses, whatever the size of a range."""
    return tuple(name for span in parse(hosts) for name in dict.fromkeys((span.text(span.low), span.text(span.high))))


def is_node_name(name: str) -> bool:
    """A node's name is its host name: lower-case letters, digits, '-' and '.', at most 63 characters."""
    return len(name) <= _MAX_NODE and _NODE.fullmatch(name) is not None


def is_address(host: str) -> bool:
    """A DNS name (letters, digits, '-', '.') or an IP address; digits and dots alone have to be an IPv4 address."""
    if len(host) > _MAX_HOST:
        return False
    if ":" in host or re.fullmatch(r"[0-9.]+", host):
        try:
            return "%" not in host and ipaddress.ip_address(host) is not None
        except ValueError:
            return False
    return _HOST.fullmatch(host) is not None
