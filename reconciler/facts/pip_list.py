"""Saved lists of Python packages: `pip freeze` and `pip list` in its columns, legacy and JSON forms."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_PINNED = re.compile(_NAME + r"={2,3}(\S+)")
_COLUMNS = re.compile(_NAME + r" +([^\s()-]\S*)")
_DIRECT = re.compile(_NAME + r"(?:\[[^\]]{0,200}\])? @ (\S+)")
_LEGACY = re.compile(_NAME + r" \(([^\s,()]+)(?:, (.+))?\)")
_NAME_ONLY = re.compile(_NAME)
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_EDITABLE_OF = re.compile(r"^# Editable .{0,80}\(" + _NAME + r"={2,3}([^\s)]+)\)")
_BROKEN = re.compile(r"Ignoring invalid distribution ([^\s(]+)")
_NOISE = re.compile(
    r"^(?:#|WARNING|DEPRECATION|ERROR|\[notice\]|-i |--|You are using pip|You should consider|Using Python |Note: )"
)
_RULE = re.compile(r"^-+(?: +-+)+ *$")
_ESCAPE = re.compile(r"%([0-7][0-9A-Fa-f])")
_INDEX, _NOT_EDITABLE = Absent("FromIndex"), Absent("NotEditable")
_SEPARATORS = re.compile(r"[-_.]+")


class Distribution(NamedTuple):
    """One package. `name` as pip wrote it. `url`: where it comes from, Absent for an index; with one, the version may be Unknown.

    A version is read out of a wheel's file name, never out of a build directory.
    """

    name: str
    version: Fact[str]
    url: Fact[str]
    editable_at: Fact[str]


@dataclass(frozen=True, slots=True)
class Distributions:
    """`packages` by normalised name (PEP 503). The other fields name packages by that.

    `normalised`: written name to normalised, where they differ. `broken`: half removed distributions that pip warned about, as it
    wrote them. `repeated`: listed more than once, the first stays.
    """

    packages: dict[str, Distribution]
    count: int
    normalised: dict[str, str]
    direct_url: tuple[str, ...]
    git: tuple[str, ...]
    file: tuple[str, ...]
    editable: tuple[str, ...]
    version_unknown: tuple[str, ...]
    broken: tuple[str, ...]
    repeated: tuple[str, ...]
    unread: tuple[Unknown, ...]


@dataclass(slots=True)
class _Found:
    listed: list[Distribution] = field(default_factory=list)
    unread: list[Unknown] = field(default_factory=list)
    columns: bool = False
    editable_column: int = -1
    editable_of: tuple[str, str] | None = None


def normal(name: str) -> str:
    """PEP 503: lower case, one dash for each run of dashes, dots and underscores."""
    return name.lower() if name.isalnum() else _SEPARATORS.sub("-", name).lower()


@lru_cache(maxsize=65536)
def _version(said: str) -> Fact[str]:
    """Most packages of a list have one of few versions."""
    return Value(said)


@lru_cache(maxsize=65536)
def _indexed(name: str, version: str, editable_at: str = "") -> Distribution:
    """Environments of many nodes hold the same packages."""
    return Distribution(name, _version(version), _INDEX, Value(editable_at) if editable_at else _NOT_EDITABLE)


def _in_url(url: str) -> Fact[str]:
    """The version in the name of a wheel or a source archive: NAME-VERSION-TAGS.whl, with %2B for a plus sign."""
    archive = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), url.partition("#")[0].rpartition("/")[2])
    if archive.endswith(".whl") and archive.count("-") >= 4:
        return Value(archive.split("-")[1])
    if archive.endswith((".tar.gz", ".zip")) and "-" in archive and not url.startswith("git+"):
        version = archive.removesuffix(".zip").removesuffix(".tar.gz").rpartition("-")[2]
        return Value(version) if version[:1].isdigit() else Unknown("NotInUrl")
    return Unknown("NotInUrl")


def _editable(found: _Found, line: str) -> None:
    """`-e PATH` or `-e git+URL#egg=NAME`; a comment in front of the first names the package."""
    target, egg = line[3:].strip(), _EGG.search(line)
    named, found.editable_of = found.editable_of, None
    if named:
        found.listed.append(_indexed(*named, target))
    elif egg:
        found.listed.append(Distribution(egg[1], Unknown("NotInUrl"), Value(target), Value(target)))
    else:
        found.unread.append(Unknown("NoName", raw.clean(line[:400], 120)))


def _json(found: _Found, line: str) -> bool:
    """pip list --format=json: one line, of which a damaged one gives nothing."""
    try:
        rows = json.JSONDecoder().raw_decode(line)[0]
    except (ValueError, RecursionError):
        return False
    for row in rows if isinstance(rows, list) else ():
        name, version, at = (
            (row.get(k) for k in ("name", "version", "editable_project_location")) if isinstance(row, dict) else [None] * 3
        )
        if isinstance(name, str) and isinstance(version, str) and name and version:
            found.listed.append(_indexed(name, version, at if isinstance(at, str) else ""))
        else:
            found.unread.append(Unknown("UnreadableRow", raw.clean(str(row)[:400], 120)))
    return True


def _row(found: _Found, line: str) -> Distribution | None:
    """One package of a freeze, a legacy list or, under its header, of columns."""
    if pinned := _PINNED.match(line):
        return _indexed(pinned[1], pinned[2].rstrip(";"))
    if direct := _DIRECT.match(line):
        return Distribution(direct[1], _in_url(direct[2]), Value(direct[2]), _NOT_EDITABLE)
    words = line.split(None, 2)
    if found.columns and len(words) >= 2 and _NAME_ONLY.fullmatch(words[0]):
        at = found.editable_column
        return _indexed(words[0], words[1], line[at:].partition("  ")[0] if at > 0 else "")
    return None


def _take(found: _Found, line: str) -> None:
    """One line into what was found so far, the commonest forms first."""
    if "==" in line and (pinned := _PINNED.fullmatch(line)):
        found.listed.append(_indexed(pinned[1], pinned[2].rstrip(";")))
    elif found.columns and (row := _COLUMNS.fullmatch(line)):
        found.listed.append(_indexed(row[1], row[2]))
    elif line[-1:] in (")", "]") and (legacy := _LEGACY.fullmatch(line.partition(" - Latest: ")[0])):
        found.listed.append(_indexed(legacy[1], legacy[2], legacy[3] or ""))
    elif not line or _RULE.match(line):
        return
    elif line.split(None, 2)[:2] == ["Package", "Version"]:
        found.columns, found.editable_column = True, line.find("Editable project location")
    elif line.startswith("-e "):
        _editable(found, line)
    elif editable := _EDITABLE_OF.match(line):
        found.editable_of = (editable[1], editable[2])
    elif _NOISE.match(line) or _BROKEN.search(line[:400]) or (line.startswith("[{") and _json(found, line)):
        return
    elif package := _row(found, line):
        found.listed.append(package)
    else:
        found.unread.append(Unknown("UnreadableLine", raw.clean(line[:400], 120)))


def _scheme(package: Distribution, scheme: str) -> bool:
    return isinstance(package.url, Value) and package.url.value.startswith(scheme)


def _summed(found: _Found, broken: tuple[str, ...]) -> Distributions:
    packages: dict[str, Distribution] = {}
    repeated = []
    for package in found.listed:
        name = normal(package.name)
        if packages.setdefault(name, package) is not package:
            repeated.append(name)
    other = {name: p for name, p in packages.items() if p.url is not _INDEX or p.editable_at is not _NOT_EDITABLE}
    return Distributions(
        packages=packages,
        count=len(packages),
        normalised={p.name: name for name, p in packages.items() if p.name != name},
        direct_url=tuple(name for name, p in other.items() if isinstance(p.url, Value)),
        git=tuple(name for name, p in other.items() if _scheme(p, "git+")),
        file=tuple(name for name, p in other.items() if _scheme(p, "file:")),
        editable=tuple(name for name, p in other.items() if isinstance(p.editable_at, Value)),
        version_unknown=tuple(name for name, p in other.items() if not isinstance(p.version, Value)),
        broken=broken,
        repeated=tuple(dict.fromkeys(repeated)),
        unread=tuple(found.unread),
    )


def parse(said: str) -> Fact[Distributions]:
    """`pip freeze` or `pip list`. Unknown where nothing is listed; Absent(NotInstalled) where there is no pip."""
    clean = text.clean(said)
    # JSON says itself where it ends
    whole, cut = scalars.ended(clean + "\n" if clean.endswith("}]") else clean)
    lines = [line.strip() for line in whole]
    if absent := scalars.no_command([*lines, *(line.detail for line in cut)], "pip"):
        return absent
    found = _Found()
    for line in lines:
        _take(found, line)
    found.unread += cut
    broken = dict.fromkeys(word[1] for line in lines if "invalid" in line and (word := _BROKEN.search(line[:400])))
    if not found.listed:
        return found.unread[0] if found.unread else Unknown("NothingListed")
    return Value(_summed(found, tuple(broken)))
