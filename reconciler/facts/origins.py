"""Where packages of a node come from, in a line each: for the head of a lock. No password is in it."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.facts import raw
from reconciler.facts.apt_sources import AptSource
from reconciler.facts.dnf_repositories import DnfRepository
from reconciler.facts.repositories import FACT, of_files
from reconciler.model.desired import PackageManager
from reconciler.model.fact import Absent, Fact, Facts, Unknown, Value

_LIMIT = 300  # characters of one line


def origins(facts: Facts, manager: PackageManager, declared: Iterable[tuple[str, str]]) -> Fact[tuple[str, ...]]:
    """Repositories that are switched on, sorted; `declared` (file name, text): those that the manifests will write there."""
    found = FACT.read(facts.raws(FACT.name))
    if not isinstance(found, Value):
        return found
    folder = "/etc/yum.repos.d/" if manager == "dnf" else "/etc/apt/sources.list.d/"
    pending = of_files({folder + name: Value(text) for name, text in declared})
    lines: set[str] = set()
    for part in (found.value, pending):
        places = part.dnf if manager == "dnf" else part.apt
        if isinstance(places, Unknown):
            return places
        if not isinstance(places, Absent):
            entries = places.value if isinstance(places.value, tuple) else places.value.repositories
            lines |= {raw.clean(_line(entry), _LIMIT) for entry in entries if _is_on(entry)}
    return Value(tuple(sorted(lines)))


def _is_on(entry: DnfRepository | AptSource) -> bool:
    if isinstance(entry, AptSource):
        return entry.enabled and "deb" in entry.types
    return entry.enabled != Value(False)


def _line(entry: DnfRepository | AptSource) -> str:
    if isinstance(entry, AptSource):
        return " ".join((*entry.uris, *entry.suites, *entry.components))
    lists = (place.value for place in (entry.mirrorlist, entry.metalink) if isinstance(place, Value))
    return " ".join((entry.id, *(entry.baseurl or lists)))
