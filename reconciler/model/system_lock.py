"""The lock of a stack's OS packages on one distribution: each name at one whole version, a line each, in the order of names.

A lock is made by `reconcile pin`. A person may add comments; what else is not exactly of its form is refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.lock import MADE_BY, Flaw
from reconciler.model.version import Version

# what rpmbuild and Debian's policy allow; a version goes into argv, and into the lines of `dnf shell`
_ENTRY = re.compile(r"([A-Za-z0-9][A-Za-z0-9._+-]{0,127}) ((?:[1-9][0-9]{0,4}:)?[A-Za-z0-9][A-Za-z0-9.+~^_:-]{0,254}(?<!-))")
_DISTRIBUTION = re.compile(r"# distribution: (\S+)")
_REPOSITORY = re.compile(r"# repository: (.+)")


@dataclass(frozen=True, slots=True)
class Locked:
    """One package: its version as `str` of Version writes it; `line` counts from 1."""

    version: Version
    line: int = 0


@dataclass(frozen=True, slots=True)
class SystemLock:
    """`repositories`: what offered these versions, one `id address` each; `notes`: comments that people added."""

    distribution: str
    repositories: tuple[str, ...]
    packages: Mapping[str, Locked]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """The file, always the same for the same lock: no time is in it, so that it differs only where a version does."""
        head = [MADE_BY, *self.notes, f"# distribution: {self.distribution}"]
        head += [f"# repository: {place}" for place in self.repositories]
        return "\n".join([*head, *(f"{name} {locked.version}" for name, locked in sorted(self.packages.items()))]) + "\n"

    def version(self, name: str, pin: str) -> str | None:
        """The locked version of a package where it is what `pin` asks for."""
        locked = self.packages.get(name)
        return str(locked.version) if locked and locked.version.meets(pin) else None


class _Reader:
    """One pass over the lines of a lock."""

    def __init__(self) -> None:
        self.distribution = ""
        self.repositories: list[str] = []
        self.notes: list[str] = []
        self.packages: dict[str, Locked] = {}
        self.flaws: list[Flaw] = []

    def take(self, number: int, line: str) -> None:
        if line.startswith("#"):
            self._comment(line)
        elif found := _ENTRY.fullmatch(line):
            self._entry(number, found[1], found[2])
        elif line:
            self.flaws.append(Flaw(number, 1, "lock-line", {"found": line.strip()}))

    def _comment(self, line: str) -> None:
        if found := _DISTRIBUTION.fullmatch(line):
            self.distribution = self.distribution or found[1]
        elif found := _REPOSITORY.fullmatch(line):
            self.repositories.append(found[1])
        elif line != MADE_BY:
            self.notes.append(line)

    def _entry(self, number: int, name: str, text: str) -> None:
        version = Version.parse(text)
        if str(version) != text:
            self.flaws.append(Flaw(number, len(name) + 2, "lock-line", {"found": f"{name} {text}"}))
        elif name in self.packages:
            self.flaws.append(Flaw(number, 1, "lock-twice", {"found": name, "line": self.packages[name].line}))
        else:
            self.packages[name] = Locked(version, number)


def parse(content: bytes) -> tuple[SystemLock | None, tuple[Flaw, ...]]:
    """The lock, or None and all that is wrong with its text. Never raises."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as e:
        bad = content[: e.start].count(b"\n") + 1
        return None, (Flaw(bad, 1, "lock-line", {"found": "bytes that are not UTF-8"}),)
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(number, line)
    if not reader.distribution and not reader.flaws:
        reader.flaws.append(Flaw(1, 1, "lock-header", {"found": "distribution"}))
    if reader.flaws:
        return None, tuple(reader.flaws)
    return SystemLock(reader.distribution, tuple(reader.repositories), reader.packages, tuple(reader.notes)), ()


def path_of(stack: str, distribution: str) -> str:
    """Where the lock stands in the repository."""
    return f"locks/{stack}/system-{distribution}.txt"


PATH = re.compile(r"locks/([^/]+)/system-([^/]+)\.txt")
