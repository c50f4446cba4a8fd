"""All packages that dpkg has installed."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.facts import packages, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Fact, Raw, Value


@dataclass(frozen=True, slots=True)
class DebPackages:
    """`packages`: `VERSION:ARCH` by name, one for each architecture; a Debian version holds its epoch itself.

    `held`: names that dpkg keeps at their version. `half`: names that dpkg left half installed or half configured.
    """

    packages: dict[str, tuple[str, ...]]
    held: tuple[str, ...]
    half: tuple[str, ...]
    count: int


def parse(raws: tuple[Raw, ...]) -> Fact[DebPackages]:
    """Absent(NotInstalled) without dpkg. Packages that were removed and left their configuration are not installed."""
    found = packages.parse_deb(raw.command_text(raws[0]))
    if not isinstance(found, Value):
        return found
    return Value(
        DebPackages(
            packages={name: tuple(f"{p.version}:{p.arch}" for p in several) for name, several in found.value.items()},
            held=tuple(name for name, several in found.value.items() if any(p.held for p in several)),
            half=tuple(name for name, several in found.value.items() if not all(p.whole for p in several)),
            count=sum(map(len, found.value.values())),
        )
    )


FACT = LiveFact(packages.DEB.key, lambda about: packages.DEB.parts, parse, slow=True)
