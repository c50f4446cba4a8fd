"""All installed RPM packages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reconciler.facts import packages, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Fact, Raw, Unknown, Value

_KEY = "gpg-pubkey"


@dataclass(frozen=True, slots=True)
class RpmPackages:
    """`packages`: `[EPOCH:]VERSION-RELEASE.ARCH` by name, in the database's order. `keys`: VERSION-RELEASE of gpg-pubkey entries.

    `several`: names with more than one version for one architecture: kernels, and what an interrupted transaction left.
    `repeated`: the very same package twice, which only a damaged database has.
    """

    packages: dict[str, tuple[str, ...]]
    keys: tuple[str, ...]
    several: tuple[str, ...]
    repeated: tuple[str, ...]
    count: int


def _rows(text: str) -> tuple[dict[str, list[tuple[str, str]]], list[str]] | Unknown:
    """(version, architecture) by name, and the keys; Unknown for a line that is no package: the list is not whole then."""
    found: dict[str, list[tuple[str, str]]] = {}
    keys: list[str] = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 5 or not all(fields) or not packages.is_number(fields[1]):
            return Unknown("UnreadableLine", raw.clean(line, 120))
        name, epoch, version, release, arch = fields
        if name == _KEY:
            keys.append(f"{version}-{release}")
        else:
            shown = f"{version}-{release}" if epoch == "0" else f"{epoch}:{version}-{release}"
            found.setdefault(name, []).append((shown, arch))
    return (found, keys) if found else Unknown("EmptyDatabase")


def parse(raws: tuple[Raw, ...]) -> Fact[RpmPackages]:
    """Absent(NotInstalled) without rpm; Unknown(DatabaseDamaged) where rpm complained and ended with 0 all the same."""
    (answer,) = raws
    text = packages.rpm_text(answer)
    if not isinstance(text, Value):
        return text
    rows = _rows(text.value)
    if isinstance(rows, Unknown):
        return rows
    found, keys = rows
    several, repeated = [], []
    for name, entries in found.items():
        if len(entries) > 1:
            distinct = set(entries)
            if len(distinct) < len(entries):
                repeated.append(name)
            if max(Counter(arch for _, arch in distinct).values()) > 1:
                several.append(name)
    return Value(
        RpmPackages(
            packages={name: tuple(f"{version}.{arch}" for version, arch in entries) for name, entries in found.items()},
            keys=tuple(keys),
            several=tuple(several),
            repeated=tuple(repeated),
            count=sum(map(len, found.values())),
        )
    )


FACT = LiveFact(packages.RPM.key, lambda about: packages.RPM.parts, parse, slow=True)
