"""Installed distributions of one Python environment, from what its directories hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, raw
from reconciler.facts.pip_list import normal
from reconciler.facts.urls import redacted
from reconciler.model.fact import Absent, Fact, Unknown, Value

# PEP 508; pip ignores distributions with another name
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """PEP 610, direct_url.json. `kind`: vcs, archive or directory. `revision`: `git COMMIT`; `hash`: `sha256=...`."""

    url: str
    kind: str
    revision: Fact[str]
    hash: Fact[str]
    subdirectory: Fact[str]


@dataclass(frozen=True, slots=True)
class Distribution:
    """`name` and `version` as the metadata says them; `local`: of 2.11.0+cu130 the part behind the plus sign.

    `origin`: Absent(FromIndex) without a direct URL. `editable`: the project's directory. `recorded`: Unix seconds, when RECORD was
    written. `requested`: by name, not as a dependency.
    """

    name: str
    version: str
    local: Fact[str]
    site: str
    origin: Fact[Origin]
    editable: Fact[str]
    installer: Fact[str]
    requested: Fact[bool]
    recorded: Fact[int]


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A second one of the same name, behind in the order of search, or in the order of the very same directory."""

    name: str
    version: str
    site: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """Metadata that names no distribution: NoMetadata, NoName, NoVersion, EmptyDirectory, HalfRemoved, Zipped, or not readable."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Installed:
    """`distributions` by normalised name (PEP 503)."""

    distributions: dict[str, Distribution]
    shadowed: tuple[Shadowed, ...]
    damaged: tuple[Damaged, ...]


def parse_origin(text: Fact[str]) -> tuple[Fact[Origin], Fact[str]]:
    """Where it comes from, and the directory of an editable one."""
    if isinstance(text, Absent):
        return Absent("FromIndex"), Absent("NotEditable")
    if not isinstance(text, Value):
        return text, text
    try:
        found = answered.mapping(json.loads(text.value))
    except (ValueError, RecursionError):
        found = {}
    url = found.get("url")
    if not isinstance(url, str) or not url:
        bad = Unknown("NotADirectUrl", raw.clean(redacted(text.value), 80))
        return bad, bad
    vcs, archive = answered.mapping(found.get("vcs_info")), answered.mapping(found.get("archive_info"))
    revision = f"{vcs.get('vcs')} {vcs.get('commit_id')}" if vcs else ""
    kind = "vcs" if vcs else "archive" if "archive_info" in found else "directory"
    subdirectory = answered.text(found.get("subdirectory"), "NotSet")
    origin = Origin(redacted(url), kind, Value(revision) if vcs else Absent("NotVcs"), _hash(archive), subdirectory)
    editable = answered.mapping(found.get("dir_info")).get("editable") is True
    return Value(origin), Value(_path(url)) if editable else Absent("NotEditable")


def _path(url: str) -> str:
    """file:///a%20b as a path; anything else as it is."""
    if not url.startswith("file://"):
        return redacted(url)
    data = re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), url[7:].encode("utf-8", "replace"))
    return data.decode("utf-8", "replace")


def _hash(archive: Mapping[str, Any]) -> Fact[str]:
    """`hash` is the older field, `hashes` the newer; pip writes both and freezes the first of the newer."""
    hashes = answered.mapping(archive.get("hashes"))
    for name, value in hashes.items():
        if isinstance(value, str):
            return Value(f"{name}={value}")
    old = archive.get("hash")
    return Value(old) if isinstance(old, str) and "=" in old else Absent("NotSet")


def _why(found: Mapping[str, Any]) -> str:
    """Why an entry names no distribution; empty where it does."""
    error = found.get("error")
    if error == "zipped":
        return "Zipped"
    if found.get("empty") is True:
        return "EmptyDirectory"
    if error is not None:
        failed = answered.failure(error, "NoMetadata")
        return failed.reason if isinstance(failed, Absent) else failed.why
    name, version = found.get("name"), found.get("version")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "NoName"
    return "" if isinstance(version, str) and _VERSION.fullmatch(version) else "NoVersion"


def _distribution(found: Mapping[str, Any], site: str, linked: Mapping[str, str]) -> Distribution:
    origin, editable = parse_origin(answered.text(found.get("direct_url"), "FromIndex"))
    name, version = found["name"], found["version"]
    if isinstance(editable, Absent) and normal(name) in linked:
        editable = Value(linked[normal(name)])
    local = version.partition("+")[2]
    installer = answered.text(found.get("installer"), "NotSaid")
    return Distribution(
        name=name,
        version=version,
        local=Value(local) if local else Absent("NoLocalVersion"),
        site=site,
        origin=origin,
        editable=editable,
        installer=Value(installer.value.strip()) if isinstance(installer, Value) else installer,
        requested=answered.flag(found["requested"]) if "requested" in found else Absent("NotSaid"),
        recorded=answered.number(found.get("recorded"), "NoRecord"),
    )


def _entries(site: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(directory, entry) of a site: its own metadata first, then what its .egg-link files lead to, as pip does."""
    path = str(site.get("path"))
    for found in answered.items(site.get("found")):
        yield path, answered.mapping(found)
    for link in map(answered.mapping, answered.items(site.get("links"))):
        if "error" in link:
            yield path, link
        for found in answered.items(link.get("found")):
            yield str(link.get("target")), answered.mapping(found)


def _linked(sites: tuple[Any, ...]) -> dict[str, str]:
    """Directory by normalised name, of every .egg-link: they make editable what is found there."""
    found = {}
    for site in map(answered.mapping, sites):
        for link in map(answered.mapping, answered.items(site.get("links"))):
            if isinstance(link.get("target"), str) and isinstance(link.get("entry"), str):
                found[normal(link["entry"].removesuffix(".egg-link"))] = link["target"]
    return found


def installed(sites: tuple[Any, ...]) -> Installed:
    """All sites in the order in which Python searches them: the first of a name is the one that is imported."""
    linked = _linked(sites)
    found: dict[str, Distribution] = {}
    shadowed: list[Shadowed] = []
    damaged: list[Damaged] = []
    for site in map(answered.mapping, sites):
        path = str(site.get("path"))
        if "error" in site:
            damaged.append(Damaged(path, "NotReadable"))
        damaged += (Damaged(f"{path}/{name}", "HalfRemoved") for name in answered.items(site.get("left")))
        for where, entry in _entries(site):
            if why := _why(entry):
                damaged.append(Damaged(f"{where}/{entry.get('entry')}", why))
                continue
            one = _distribution(entry, where, linked)
            first = found.setdefault(normal(one.name), one)
            if first is not one and (first.site, first.version) != (one.site, one.version):
                shadowed.append(Shadowed(one.name, one.version, where))
    return Installed(dict(sorted(found.items())), tuple(shadowed), tuple(sorted(damaged, key=lambda one: one.path)))


def frozen(one: Distribution) -> str:
    """The line of `pip freeze`; for an editable one `-e DIRECTORY`: pip asks Git for more, we do not."""
    if isinstance(one.editable, Value):
        return f"-e {one.editable.value}"
    if not isinstance(one.origin, Value):
        return f"{one.name}=={one.version}"
    origin = one.origin.value
    url = origin.url
    if isinstance(origin.revision, Value):
        vcs, _, commit = origin.revision.value.partition(" ")
        url = f"{vcs}+{url}@{commit}"
    marks = [origin.hash.value] if isinstance(origin.hash, Value) else []
    if isinstance(origin.subdirectory, Value):
        marks.append(f"subdirectory={origin.subdirectory.value}")
    return f"{one.name} @ {url}" + (f"#{'&'.join(marks)}" if marks else "")
