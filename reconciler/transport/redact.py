"""Take out of recordings what identifies machines and people, each value replaced by the same stand-in everywhere.

Kept, since plans and tests read it: host and user names, private and link-local addresses, boot ids, versions, models, sizes,
times, digests of files, kernel text. Stand-ins are numbered in the order of appearance: none can be computed back.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# What packages say is full of versions such as 9.5.1.17, which look like addresses; addresses are not looked for in it.
VERSIONED = frozenset({"rpm", "dnf", "dpkg", "dpkg-query", "apt", "apt-cache", "apt-get", "apt-mark", "pip", "nvidia-smi"})


def _always(_: str) -> bool:
    return True


def _public(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def _hardware(text: str) -> bool:
    """Not the addresses that mean nobody and everybody."""
    return len(set(re.sub(r"[^0-9a-f]", "", text.lower()))) > 1


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` finds a value (its last group, else all of it), `applies` confirms it, `stand_in` makes the replacement from
    a number. `versions`: also in what packages say. `source`: only in answers of sources that it fits, whole where given."""

    name: str
    reason: str
    pattern: re.Pattern[str]
    stand_in: Callable[[int], str]
    applies: Callable[[str], bool] = _always
    versions: bool = True
    source: re.Pattern[str] | None = None


def _mac(n: int) -> str:
    return "02:00:00:" + ":".join(f"{n:06x}"[i : i + 2] for i in (0, 2, 4))


RULES: Sequence[Rule] = (
    Rule(
        "private-key",
        "a secret wherever it stands",
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
        lambda n: f"-----REDACTED PRIVATE KEY {n}-----",
    ),
    Rule(
        "public-key",
        "host keys and authorized keys name machines and people",
        re.compile(r"\b(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+) (AAAA[0-9A-Za-z+/=]{16,})"),
        lambda n: f"AAAAredacted{n}",
    ),
    Rule("fingerprint", "as the key itself", re.compile(r"SHA256:([0-9A-Za-z+/]{43})"), lambda n: f"redacted{n}"),
    Rule(
        "machine-id",
        "identifies an installation, and is secret by its own manual page",
        re.compile(r"^[0-9a-f]{32}$", re.MULTILINE),
        lambda n: f"{n:032x}",
        source=re.compile(r"machine-id"),
    ),
    Rule(
        "dmi",
        "serial numbers of boards and chassis",
        re.compile(r"^.+$", re.MULTILINE),
        lambda n: f"SERIAL{n}",
        source=re.compile(r"/dmi/id/(?:\w+_serial|product_uuid|\w*asset_tag)$"),
    ),
    Rule(
        "serial",
        "names one piece of hardware, to its maker and on the market",
        re.compile(
            r"\bserial(?:[ _-]?(?:number|no))?\b[\"']?(?: *[:=>] *| +|\t+)[\"']?((?=[A-Za-z-]*\d)[0-9A-Za-z-]{5,})", re.IGNORECASE
        ),
        lambda n: f"SERIAL{n}",
    ),
    Rule(
        "gpu-serial", "the same, in columns", re.compile(r"\b[01]\d{12}\b"), lambda n: f"{n:013}", source=re.compile(r"nvidia-smi")
    ),
    Rule(
        "gpu-uuid",
        "names one GPU or MIG instance",
        re.compile(r"\b(?:GPU|MIG)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b"),
        lambda n: f"00000000-0000-0000-0000-{n:012x}",
    ),
    Rule(
        "gpu-pdi",
        "per-device identifier: the same as a number",
        re.compile(r"\bpdi(?:>| *: *)(0x[0-9a-f]{16})\b", re.IGNORECASE),
        lambda n: f"0x{n:016x}",
        _hardware,
    ),
    Rule(
        "server",
        "which mirrors and indexes a site uses",
        re.compile(r"\b(?:https?|ftp|rsync|git)://(?:[^\s/@\"']{1,100}@)?((?:[\w-]+\.)+[A-Za-z]{2,24})(?=[\s:/\"',;)\]>]|$)"),
        lambda n: f"host{n}.example",
        source=re.compile(r"^fragment |\b(?:dnf|apt|yum|pip)\b|sources\.list|\.repo$"),
    ),
    Rule(
        "infiniband",
        "hardware addresses of InfiniBand ports",
        re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"),
        lambda n: "00:" * 16 + ":".join(f"{n:08x}"[i : i + 2] for i in (0, 2, 4, 6)),
        _hardware,
    ),
    Rule(
        "guid",
        "the same as one number",
        re.compile(r"guid(?:\"?: *\"?|:? +)((?:0x)?[0-9a-f]{16}|(?:[0-9a-f]{4}:){3}[0-9a-f]{4})", re.IGNORECASE),
        lambda n: f"0x{n:016x}",
        _hardware,
    ),
    Rule(
        "gid",
        "a link-local GID ends with the port's GUID; written out in full as /sys has it",
        re.compile(r"\bfe80(?::0000){3}:((?:[0-9a-f]{4}:){3}[0-9a-f]{4})\b"),
        lambda n: ":".join(f"{n:016x}"[i : i + 4] for i in (0, 4, 8, 12)),
        _hardware,
    ),
    Rule(
        "mac",
        "names one network card",
        re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"),
        _mac,
        _hardware,
    ),
    Rule(
        "public-ipv4",
        "says where a site is; stand-ins are of the range for benchmarks (RFC 2544)",
        re.compile(r"(?<![\w.+~-])(?:\d{1,3}\.){3}\d{1,3}(?![\w+~]|\.\d|-\d)"),
        lambda n: f"198.18.{n // 256 % 256}.{n % 256}",
        _public,
        versions=False,
    ),
    Rule(
        "public-ipv6",
        "the same; stand-ins are of the range for documentation (RFC 3849)",
        re.compile(r"(?<![\w.:])(?=[0-9A-Fa-f]*:)[0-9A-Fa-f:]{3,39}(?![\w:])"),
        lambda n: f"2001:db8::{n:x}",
        _public,
        versions=False,
    ),
)


class Redactor:
    """Remembers which stand-in a value got, for one set of recordings."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def answers(self, parts: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
        """The answers to the parts of one probe, as they travel."""
        sources = [*map(_source, parts), *[""] * len(answers)]
        return [self.value(answer, source) for answer, source in zip(answers, sources, strict=False)]

    def value(self, value: Any, source: str = "") -> Any:
        """Any JSON value: every text in it; `out64` and `err64` are bytes in base64."""
        if isinstance(value, str):
            return self.text(value, source)
        if isinstance(value, list):
            return [self.value(item, source) for item in value]
        if isinstance(value, dict):
            return {
                key: self._bytes(item, source) if key in ("out64", "err64") else self.value(item, source)
                for key, item in value.items()
            }
        return value

    def _bytes(self, packed: str, source: str) -> str:
        # Latin-1 is any bytes and back; what is looked for is ASCII
        text = base64.b64decode(packed).decode("latin-1")
        return base64.b64encode(self.text(text, source).encode("latin-1")).decode()

    def text(self, text: str, source: str = "") -> str:
        """`source` is the command or the path that `text` came from."""
        versioned = source.partition(" ")[0].rpartition("/")[2] in VERSIONED or ".dist-info/" in source
        for rule in RULES:
            if (rule.versions or not versioned) and (rule.source is None or rule.source.search(source)):
                text = rule.pattern.sub(lambda match, rule=rule: self._replace(rule, match), text)  # type: ignore[misc]
        return text

    def _replace(self, rule: Rule, match: re.Match[str]) -> str:
        group = match.lastindex or 0
        found = match.group(group)
        if not rule.applies(found):
            return match.group(0)
        start, end = match.start(group) - match.start(0), match.end(group) - match.start(0)
        return match.group(0)[:start] + self._stand_in(rule, found) + match.group(0)[end:]

    def _stand_in(self, rule: Rule, found: str) -> str:
        key = (rule.name, found.lower())
        if key not in self._known:
            self._counts[rule.name] = self._counts.get(rule.name, 0) + 1
            self._known[key] = rule.stand_in(self._counts[rule.name])
        return self._known[key]


def _source(part: Any) -> str:
    argv = part.get("argv")
    if isinstance(argv, list):
        return " ".join(map(str, argv))
    if "fragment" in part:
        return f"fragment {part['fragment']}"
    return str(part.get("path") or part.get("manager") or "")
