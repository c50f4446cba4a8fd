"""Where a node's packages come from: dnf's repositories and apt's sources, from their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, raw
from reconciler.facts.apt_sources import AptSource, parse_list, parse_sources
from reconciler.facts.dnf_repositories import DnfRepository, excludes, repository, sections
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

_LIMIT = 256 << 10
_FILES = ("/etc/dnf/dnf.conf", "/etc/yum.repos.d/*.repo", "/etc/apt/sources.list", "/etc/apt/sources.list.d/*")


@dataclass(frozen=True, slots=True)
class Dnf:
    """`excludes`: dnf.conf's own. `twice`: ids that several sections have, of which dnf takes the last and warns."""

    repositories: tuple[DnfRepository, ...]
    excludes: Fact[tuple[str, ...]]
    twice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repositories:
    """`unread`: files that could not be read and lines that could not be understood, by file."""

    dnf: Fact[Dnf]
    apt: Fact[tuple[AptSource, ...]]
    unread: dict[str, tuple[Absent | Unknown, ...]]


def texts(found: Mapping[str, Any], limit: int = _LIMIT) -> dict[str, Fact[str]]:
    """The files of fragment `tree`; Unknown(OutputTooLarge) for one that fills its limit, of which the rest is not here."""
    result: dict[str, Fact[str]] = {}
    for path, content in answered.mapping(found.get("files")).items():
        text = answered.text(content)
        full = isinstance(text, Value) and len(text.value.encode("utf-8", "replace")) >= limit
        result[path] = Unknown("OutputTooLarge") if full else text
    return result


def _dnf(files: dict[str, Fact[str]], unread: dict[str, tuple[Absent | Unknown, ...]]) -> Fact[Dnf]:
    found: list[DnfRepository] = []
    main: Fact[tuple[str, ...]] = Absent("NoSuchFile")
    for path, text in files.items():
        if not path.endswith((".repo", "/dnf.conf")):
            continue
        if not isinstance(text, Value):
            unread[path] = (text,)
            main = text if path.endswith(".conf") else main
            continue
        ini, strange = sections(text.value)
        if strange:
            unread[path] = strange
        if path.endswith(".conf"):
            main = Value(excludes(ini.pop("main", {})))
        found += [repository(name, path, options) for name, options in ini.items()]
    if not found and main == Absent("NoSuchFile") and not any(path.endswith(".repo") for path in unread):
        return Absent("NoConfiguration")
    names = [r.id for r in found]
    return Value(Dnf(tuple(found), main, tuple(dict.fromkeys(name for name in names if names.count(name) > 1))))


def _apt(files: dict[str, Fact[str]], unread: dict[str, tuple[Absent | Unknown, ...]]) -> Fact[tuple[AptSource, ...]]:
    """Files with another ending than .list and .sources are not apt's."""
    read = {path: text for path, text in files.items() if path.startswith("/etc/apt/") and path.endswith((".list", ".sources"))}
    found: list[AptSource] = []
    for path, text in read.items():
        if not isinstance(text, Value):
            unread[path] = (text,)
            continue
        sources, strange = parse_sources(text.value, path) if path.endswith(".sources") else parse_list(text.value, path)
        found += sources
        if strange:
            unread[path] = strange
    return Value(tuple(found)) if read else Absent("NoConfiguration")


def parse(raws: tuple[Raw, ...]) -> Fact[Repositories]:
    """Each file on its own: what cannot be read of one loses nothing of another."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    if not isinstance(found.value, Mapping) or not isinstance(found.value.get("files"), Mapping):
        return Unknown("UnexpectedAnswer")
    return Value(of_files(texts(found.value)))


def of_files(files: dict[str, Fact[str]]) -> Repositories:
    """What these files say, by their paths on a node."""
    unread: dict[str, tuple[Absent | Unknown, ...]] = {}
    return Repositories(dnf=_dnf(files, unread), apt=_apt(files, unread), unread=unread)


FACT = LiveFact(
    "repositories",
    lambda about: (Ask("tree", json.dumps({"files": _FILES, "links": (), "limit": _LIMIT}), 5.0, quick=True),),
    parse,
)
