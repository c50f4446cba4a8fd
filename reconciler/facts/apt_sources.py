"""Text of apt's source lists: the one-line form and deb822."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.facts.urls import redacted
from reconciler.model.fact import Absent, Fact, Unknown, Value

_LINE = re.compile(r"(?P<off>#\s*)?(?P<type>deb|deb-src)\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+:\S*)\s+(?P<rest>\S.*)")
_OPTION = re.compile(r"([A-Za-z-]+)([+-]?=)(\S+)")
_NO = ("no", "false", "without", "off", "disable", "0")  # apt-pkg/contrib/strutl.cc, StringToBool
_BEGIN = "-----BEGIN PGP"


@dataclass(frozen=True, slots=True)
class AptSource:
    """One line or stanza. `signed_by`: paths or fingerprints; `inline` for a key that stands in the file itself.

    `trusted`: apt's option of that name, which switches signatures off.
    """

    file: str
    types: tuple[str, ...]
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    architectures: tuple[str, ...]
    signed_by: Fact[str]
    trusted: Fact[bool]
    enabled: bool


Parsed = tuple[tuple[AptSource, ...], tuple[Unknown, ...]]


def _false(word: str) -> bool:
    return word.strip().lower() in _NO


def _signed(value: str | None) -> Fact[str]:
    if not value or not value.strip():
        return Absent("NotSet")
    return Value("inline") if _BEGIN in value else Value(" ".join(value.split()))


def _trusted(value: str | None) -> Fact[bool]:
    return Absent("NotSet") if value is None else Value(not _false(value))


def _list(value: str) -> tuple[str, ...]:
    return tuple(value.replace(",", " ").split())


def parse_list(text: str, file: str) -> Parsed:
    """sources.list(5), one-line style. A commented line of this form is a source that is switched off."""
    found: list[AptSource] = []
    unread: list[Unknown] = []
    for line in text.splitlines():
        plain = line.strip()
        entry = _LINE.fullmatch(plain)
        if entry:
            options = {key.lower(): value for key, _, value in _OPTION.findall(entry["options"] or "")}
            suite, *components = entry["rest"].partition(" #")[0].split()
            found.append(
                AptSource(
                    file=file,
                    types=(entry["type"],),
                    uris=(redacted(entry["uri"]),),
                    suites=(suite,),
                    components=tuple(components),
                    architectures=_list(options.get("arch", "")),
                    signed_by=_signed(options.get("signed-by")),
                    trusted=_trusted(options.get("trusted")),
                    enabled=not entry["off"],
                )
            )
        elif plain and not plain.startswith("#"):
            unread.append(Unknown("UnreadableLine", raw.clean(redacted(line), 120)))
    return tuple(found), tuple(unread)


def stanzas(text: str) -> tuple[list[dict[str, str]], list[Unknown]]:
    """deb822: fields by lower-case name, one mapping a stanza; a value goes on in lines that begin with a blank."""
    found: list[dict[str, str]] = [{}]
    unread: list[Unknown] = []
    last = ""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            found.append({})
            last = ""
        elif line.startswith("#"):
            continue
        elif line[0] in " \t" and last:
            found[-1][last] += "\n" + line.strip()
        elif colon and re.fullmatch(r"[!-9;-~]+", name):
            last = name.lower()
            found[-1][last] = value.strip()
        else:
            unread.append(Unknown("UnreadableLine", raw.clean(redacted(line), 120)))
    return [stanza for stanza in found if stanza], unread


def parse_sources(text: str, file: str) -> Parsed:
    """sources.list(5), deb822 style. A stanza without Types, URIs or Suites is no source: apt refuses the whole file."""
    fields, unread = stanzas(text)
    found = []
    for stanza in fields:
        missing = [key for key in ("types", "uris", "suites") if not stanza.get(key)]
        if missing:
            unread.append(Unknown("Missing", ", ".join(missing)))
            continue
        found.append(
            AptSource(
                file=file,
                types=tuple(stanza["types"].split()),
                uris=tuple(map(redacted, stanza["uris"].split())),
                suites=tuple(stanza["suites"].split()),
                components=tuple(stanza.get("components", "").split()),
                architectures=_list(stanza.get("architectures", "")),
                signed_by=_signed(stanza.get("signed-by")),
                trusted=_trusted(stanza.get("trusted")),
                enabled=not _false(stanza.get("enabled", "yes")),
            )
        )
    return tuple(found), tuple(unread)
