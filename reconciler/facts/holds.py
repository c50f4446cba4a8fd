"""What keeps packages at a version or out: dnf's locks and excludes, dpkg's holds, apt's pins."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.facts import packages, raw
from reconciler.facts.apt_sources import stanzas
from reconciler.facts.dnf_repositories import excludes, sections
from reconciler.facts.live import LiveFact
from reconciler.facts.repositories import texts
from reconciler.model.fact import Absent, Ask, Fact, Raw, Run, Unknown, Value

_LIMIT = 256 << 10
_FILES = ("/etc/dnf/dnf.conf", "/etc/yum.repos.d/*.repo", "/etc/apt/preferences", "/etc/apt/preferences.d/*")
_PRIORITY = re.compile(r"[+-]?[0-9]{1,9}")
# apt_preferences(5): other names in the directory are ignored
_PIN_FILE = re.compile(r"/etc/apt/preferences|/etc/apt/preferences\.d/[A-Za-z0-9_-]+(?:\.pref)?")


@dataclass(frozen=True, slots=True)
class Pin:
    """One stanza of apt_preferences(5), as it is written."""

    file: str
    package: str
    pin: str
    priority: Fact[int]


@dataclass(frozen=True, slots=True)
class Holds:
    """`locks`: lines of dnf's versionlock.list that count, Unknown where no plugin would honour them.

    `excludes`: by file and section, `dnf.conf main`. `held`: names that dpkg holds. `unread`: what could not be read, by file.
    """

    locks: Fact[tuple[str, ...]]
    excludes: dict[str, tuple[str, ...]]
    held: Fact[tuple[str, ...]]
    pins: tuple[Pin, ...]
    unread: dict[str, tuple[Absent | Unknown, ...]]


def parse_locks(file: Raw, plugin: Raw) -> Fact[tuple[str, ...]]:
    """Every line that is no comment, `!` for an exclusion in front; Absent(NoSuchFile) without a lock file."""
    text = raw.file_text(file)
    if not isinstance(text, Value):
        return text
    lines = tuple(line.strip() for line in text.value.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    honoured = packages.parse_plugin(raw.file_text(plugin))
    return Value(lines) if isinstance(honoured, Value) or not lines else honoured


def parse_held(answer: Raw) -> Fact[tuple[str, ...]]:
    """`grep -B3` in dpkg's status file, where Package stands before Status. Without the package dpkg itself the file is damaged."""
    if answer.status == 2 and b"No such file" in answer.err:
        return Absent("NotInstalled")
    text = raw.command_text(answer)
    if not isinstance(text, Value):
        return Unknown("EmptyDatabase") if answer.status == 1 else text
    held: dict[str, None] = {}
    name, whole = "", False
    for line in text.value.splitlines():
        if line.startswith("Package: "):
            name = line[9:].strip()
            whole = whole or name == "dpkg"
        elif line == "--":
            name = ""
        elif line.startswith("Status: hold "):
            held[name or "?"] = None
    return Value(tuple(held)) if whole else Unknown("EmptyDatabase")


def parse_pins(text: str, file: str) -> tuple[tuple[Pin, ...], tuple[Unknown, ...]]:
    """A stanza without Package, Pin and Pin-Priority does nothing, and is named as unread."""
    found, unread = [], []
    fields, strange = stanzas(text)
    for stanza in fields:
        missing = [key for key in ("package", "pin", "pin-priority") if key not in stanza]
        if missing:
            unread.append(Unknown("Missing", ", ".join(missing)))
            continue
        said = stanza["pin-priority"]
        number = Value(int(said)) if _PRIORITY.fullmatch(said) else Unknown("NotANumber", raw.clean(said, 40))
        found.append(Pin(file, " ".join(stanza["package"].split()), stanza["pin"], number))
    return tuple(found), (*strange, *unread)


def parse(raws: tuple[Raw, ...]) -> Fact[Holds]:
    """Each source on its own."""
    tree, lock, plugin, status = raws
    found = raw.fragment(tree)
    if not isinstance(found, Value):
        return found
    if not isinstance(found.value, Mapping) or not isinstance(found.value.get("files"), Mapping):
        return Unknown("UnexpectedAnswer")
    excluded: dict[str, tuple[str, ...]] = {}
    pins: list[Pin] = []
    unread: dict[str, tuple[Absent | Unknown, ...]] = {}
    for path, text in texts(found.value, _LIMIT).items():
        if not isinstance(text, Value):
            unread[path] = (text,)
        elif path.endswith((".repo", "/dnf.conf")):
            for section, options in sections(text.value)[0].items():
                if names := excludes(options):
                    excluded[f"{path} {section}"] = names
        elif _PIN_FILE.fullmatch(path):
            good, strange = parse_pins(text.value, path)
            pins += good
            unread.update({path: strange} if strange else {})
    return Value(Holds(parse_locks(lock, plugin), excluded, parse_held(status), tuple(pins), unread))


FACT = LiveFact(
    "holds",
    lambda about: (
        Ask("tree", json.dumps({"files": _FILES, "links": (), "limit": _LIMIT}), 5.0, quick=True),
        *packages.LOCK.parts,
        Run(("grep", "-B3", "-E", "^Status: hold |^Package: dpkg$", "/var/lib/dpkg/status"), 5.0),
    ),
    parse,
)
