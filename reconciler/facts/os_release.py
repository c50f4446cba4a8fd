"""Which distribution a node runs: os-release(5)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.facts.live import LiveFact
from reconciler.model.desired import PackageManager
from reconciler.model.fact import Absent, Fact, Facts, Probe, Raw, Read, Unknown, Value

KEY = "os-release"
PROBE = Probe(KEY, (Read("/etc/os-release", limit=64 << 10),))

_LINE = re.compile(r"^\s*([A-Z][A-Z0-9_]*)=(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s\"']*))\s*$")
_MAJOR_ONLY = {"centos", "rhel", "rocky", "almalinux", "debian"}  # their minor releases are one distribution for us
_MANAGER: dict[str, PackageManager] = {
    "centos-stream": "dnf",
    "rhel": "dnf",
    "rocky": "dnf",
    "almalinux": "dnf",
    "ubuntu": "apt",
    "debian": "apt",
}


@dataclass(frozen=True, slots=True)
class OsRelease:
    """`distribution`: as manifests name it; `fields`: the file's own variables."""

    distribution: Fact[str]
    manager: Fact[PackageManager]
    fields: dict[str, str]


def parse(text: Fact[str]) -> Fact[dict[str, str]]:
    """All variables of the file. Unknown(NoId) where the two that name the distribution are missing."""
    if not isinstance(text, Value):
        return text
    fields: dict[str, str] = {}
    for line in text.value.splitlines():
        if found := _LINE.match(line):
            name, double, single, bare = found.groups()
            fields[name] = re.sub(r"\\(.)", r"\1", double) if double is not None else single or bare or ""
    if not fields.get("ID"):
        return Unknown("NoId", raw.clean(text.value, 80))
    return Value(fields)


def distribution(facts: Facts) -> Fact[str]:
    """The manifest's name of the node's distribution: centos-stream-9, ubuntu-24.04."""
    return named(parse(raw.file_text(raw.part(facts, KEY))))


def named(fields: Fact[dict[str, str]]) -> Fact[str]:
    """The same from the file's variables."""
    if not isinstance(fields, Value):
        return fields
    family, version = fields.value["ID"], fields.value.get("VERSION_ID", "")
    if not version:
        return Unknown("NoVersionId", family)
    if family in _MAJOR_ONLY:
        version = version.partition(".")[0]
    if family == "centos":
        family = "centos-stream" if "Stream" in fields.value.get("NAME", "") else "centos-linux"
    return Value(f"{family}-{version}")


def manager(found: Fact[str]) -> Fact[PackageManager]:
    """The package manager that a distribution brings; Absent(NoKnownManager) for one that we do not know."""
    if not isinstance(found, Value):
        return found
    known = _MANAGER.get(found.value.rpartition("-")[0])
    return Value(known) if known else Absent("NoKnownManager")


def parse_live(raws: tuple[Raw, ...]) -> Fact[OsRelease]:
    fields = parse(raw.file_text(raws[0]))
    if not isinstance(fields, Value):
        return fields
    found = named(fields)
    return Value(OsRelease(found, manager(found), fields.value))


FACT = LiveFact(KEY, lambda about: PROBE.parts, parse_live)
