"""Which versions the repositories of a node offer: `dnf repoquery` and `apt-cache madison`."""

from __future__ import annotations

import re
from functools import cmp_to_key

from reconciler.facts import order, raw
from reconciler.facts.packages import is_number
from reconciler.model.desired import PackageManager
from reconciler.model.fact import Absent, Available, Fact, Facts, Probe, Unknown, Value
from reconciler.model.version import Version

KEY = "available"
# what rpmbuild and Debian's policy allow in a version: it goes into argv, and into the lines of `dnf shell`
_RPM_WORD = re.compile(r"[A-Za-z0-9._+~^]+")
_DEB_WORD = re.compile(r"[A-Za-z0-9.+~:-]+")


def probe(
    manager: PackageManager,
    names: tuple[str, ...],
    repositories: tuple[tuple[str, str], ...],
    key: str = KEY,
    *,
    every_stream: bool = False,
) -> Probe:
    """Ask for `names`, as if `repositories` (file name, text) were on the node already; `every_stream` as Available has it."""
    return Probe(key, (Available(manager, names, repositories, every_stream=every_stream),))


def parse_dnf(text: Fact[str]) -> Fact[dict[str, tuple[Version, ...]]]:
    """`repoquery --showduplicates` in our format. dnf sorts its lines as text, 1.10 before 1.9: put in order here."""
    if not isinstance(text, Value):
        return text
    found: dict[str, set[Version]] = {}
    for line in text.value.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[0] and is_number(fields[1]) and all(map(_RPM_WORD.fullmatch, fields[2:4])):
            if fields[4] != "src":
                found.setdefault(fields[0], set()).add(Version(*fields[1:4]))
        elif line.strip():
            return Unknown("UnreadableLine", raw.clean(line, 120))
    return Value({name: tuple(sorted(versions, key=cmp_to_key(_compare))) for name, versions in found.items()})


def _compare(one: Version, two: Version) -> int:
    pairs = ((one.epoch, two.epoch), (one.version, two.version), (one.release, two.release))
    return next((result for pair in pairs if (result := order.compare(*pair))), 0)


def parse_apt(text: Fact[str]) -> Fact[dict[str, tuple[Version, ...]]]:
    """`apt-cache madison`: NAME | VERSION | SOURCE, newest first; turned round here."""
    if not isinstance(text, Value):
        return text
    found: dict[str, tuple[Version, ...]] = {}
    for line in text.value.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3 or not fields[0] or not _DEB_WORD.fullmatch(fields[1]):
            return Unknown("UnreadableLine", raw.clean(line, 120))
        version = Version.parse(fields[1])
        if not fields[2].endswith("Sources") and version not in found.get(fields[0], ()):
            found[fields[0]] = (version, *found.get(fields[0], ()))
    return Value(found)


def offered(facts: Facts, manager: PackageManager) -> Fact[dict[str, tuple[Version, ...]]]:
    """All versions on offer by name, oldest first. A name that no repository has is not in it."""
    answer = raw.command_text(raw.part(facts, KEY))
    if isinstance(answer, Absent):
        return Unknown("NoPackageManager", manager)
    return parse_dnf(answer) if manager == "dnf" else parse_apt(answer)
