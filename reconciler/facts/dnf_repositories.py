"""Text of dnf's .repo files and dnf.conf: what stands there, variables and lists as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.facts.urls import redacted
from reconciler.model.fact import Absent, Fact, Unknown, Value

_SECTION = re.compile(r"\[([^\]]+)\]")
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)\s*[=:]\s*(.*)")
# libdnf/conf/OptionBool.cpp
_TRUE, _FALSE = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


@dataclass(frozen=True, slots=True)
class DnfRepository:
    """One section of a .repo file. URLs without their passwords, `$releasever` left as it is.

    `gpgcheck`, `priority`: Absent(NotSet) where dnf.conf's or dnf's own value counts; so too `enabled`, of which that is true.
    """

    id: str
    file: str
    name: Fact[str]
    enabled: Fact[bool]
    baseurl: tuple[str, ...]
    mirrorlist: Fact[str]
    metalink: Fact[str]
    gpgcheck: Fact[bool]
    gpgkey: tuple[str, ...]
    priority: Fact[int]
    excludes: tuple[str, ...]


def sections(text: str) -> tuple[dict[str, dict[str, str]], tuple[Unknown, ...]]:
    """`{section: {option: value}}` of an ini text, and lines that are neither; a value goes on in lines that begin with a blank."""
    found: dict[str, dict[str, str]] = {}
    unread: list[Unknown] = []
    here: dict[str, str] | None = None
    last = ""
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain[0] in "#;":
            continue
        if section := _SECTION.fullmatch(plain):
            here, last = found.setdefault(section[1], {}), ""
        elif line[0] in " \t" and here is not None and last:
            here[last] += "\n" + plain
        elif here is not None and (option := _OPTION.fullmatch(plain)):
            last = option[1]
            here[last] = option[2]
        else:
            unread.append(Unknown("UnreadableLine", raw.clean(redacted(line), 120)))
    return found, tuple(unread)


def words(value: str) -> tuple[str, ...]:
    """A list of dnf: separated by blanks, commas or lines."""
    return tuple(re.split(r"[\s,]+", value.strip(" \t\n,"))) if value.strip(" \t\n,") else ()


def boolean(value: str | None) -> Fact[bool]:
    if value is None:
        return Absent("NotSet")
    lower = value.strip().lower()
    return Value(lower in _TRUE) if lower in (*_TRUE, *_FALSE) else Unknown("UnexpectedWord", raw.clean(value, 40))


def _url(value: str | None) -> Fact[str]:
    return Value(redacted(value)) if value else Absent("NotSet")


def _priority(value: str | None) -> Fact[int]:
    if value is None:
        return Absent("NotSet")
    return Value(int(value)) if re.fullmatch(r"-?[0-9]{1,6}", value) else Unknown("NotANumber", raw.clean(value, 40))


def repository(name: str, file: str, options: dict[str, str]) -> DnfRepository:
    """One section as a repository: whatever is set there."""
    return DnfRepository(
        id=name,
        file=file,
        name=Value(options["name"]) if options.get("name") else Absent("NotSet"),
        enabled=boolean(options.get("enabled", "1")),
        baseurl=tuple(map(redacted, words(options.get("baseurl", "")))),
        mirrorlist=_url(options.get("mirrorlist")),
        metalink=_url(options.get("metalink")),
        gpgcheck=boolean(options.get("gpgcheck")),
        gpgkey=tuple(map(redacted, words(options.get("gpgkey", "")))),
        priority=_priority(options.get("priority")),
        excludes=excludes(options),
    )


def excludes(options: dict[str, str]) -> tuple[str, ...]:
    """`excludepkgs`, and `exclude` as dnf still takes it."""
    return tuple(dict.fromkeys(word for key in ("excludepkgs", "exclude") for word in words(options.get(key, ""))))
