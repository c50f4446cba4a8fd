"""Which versions the repositories of a node offer: `dnf repoquery` and `apt-cache madison`."""

from __future__ import annotations

from reconciler.facts import raw
from reconciler.facts.packages import Version, parse_deb_version
from reconciler.model.desired import PackageManager
from reconciler.model.fact import Absent, Available, Fact, Facts, Probe, Unknown, Value

KEY = "available"


def probe(manager: PackageManager, names: tuple[str, ...], repositories: tuple[tuple[str, str], ...]) -> Probe:
    """Ask for `names`, as if `repositories` (file name, text) were on the node already."""
    return Probe(KEY, (Available(manager, names, repositories),))


def parse_dnf(text: Fact[str]) -> Fact[dict[str, tuple[Version, ...]]]:
    """`repoquery --showduplicates` in our format: oldest first, as dnf sorts them."""
    if not isinstance(text, Value):
        return text
    found: dict[str, tuple[Version, ...]] = {}
    for line in text.value.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[4] != "src":
            version = Version(*fields[1:4])
            if version not in found.get(fields[0], ()):
                found[fields[0]] = (*found.get(fields[0], ()), version)
        elif line.strip():
            return Unknown("UnreadableLine", raw.clean(line, 120))
    return Value(found)


def parse_apt(text: Fact[str]) -> Fact[dict[str, tuple[Version, ...]]]:
    """`apt-cache madison`: NAME | VERSION | SOURCE, newest first; turned round here."""
    if not isinstance(text, Value):
        return text
    found: dict[str, tuple[Version, ...]] = {}
    for line in text.value.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3:
            return Unknown("UnreadableLine", raw.clean(line, 120))
        version = parse_deb_version(fields[1])
        if not fields[2].endswith("Sources") and version not in found.get(fields[0], ()):
            found[fields[0]] = (version, *found.get(fields[0], ()))
    return Value(found)


def offered(facts: Facts, manager: PackageManager) -> Fact[dict[str, tuple[Version, ...]]]:
    """All versions on offer by name, oldest first. A name that no repository has is not in it."""
    answer = raw.command_text(raw.part(facts, KEY))
    if isinstance(answer, Absent):
        return Unknown("NoPackageManager", manager)
    return parse_dnf(answer) if manager == "dnf" else parse_apt(answer)
