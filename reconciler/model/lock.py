"""The lock of a Python environment: every distribution at one version, each file by its hash, in pip's requirements form.

A lock is made by `reconcile pin` and never written by hand; what is not exactly of that form is refused with its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model.problem import Datum

MADE_BY = "# made by `reconcile pin`: do not edit"
BUILT = "    # built once from source: "
_ENTRY = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([^\s\\;]+) \\")
_HASH = re.compile(r"    --hash=sha256:([0-9a-f]{64})( \\)?")
_BUILT = re.compile(re.escape(BUILT) + r"([A-Za-z0-9._+!-]+\.whl) sha256:([0-9a-f]{64})")
_HEADER = re.compile(r"# (packages|python|platform): (\S+)")


def canonical(name: str) -> str:
    """The one spelling of a distribution's name (PEP 503), extras left out."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


@dataclass(frozen=True, slots=True)
class Pinned:
    """One distribution. `hashes` are SHA-256 (hex) of files that may be installed; `built`: name and hash of the wheel that was
    made from its source; `line` counts from 1."""

    name: str
    version: str
    hashes: tuple[str, ...]
    built: tuple[str, str] | None = None
    line: int = 0

    def lines(self) -> Iterator[str]:
        """As it stands in a lock."""
        yield f"{self.name}=={self.version} \\"
        for i, digest in enumerate(self.hashes, start=1):
            yield f"    --hash=sha256:{digest}" + (" \\" if i < len(self.hashes) else "")
        if self.built:
            yield f"{BUILT}{self.built[0]} sha256:{self.built[1]}"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a lock's text, and where; the words are those of a problem `code`."""

    line: int
    column: int
    code: str
    data: Mapping[str, Datum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """`packages` is the digest of what was declared, `python` a series, `platform` uv's name of the oldest that it is for."""

    packages: str
    python: str
    platform: str
    pinned: Mapping[str, Pinned]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what an environment is made from. Comments and order do not count."""
        said = [f"python {self.python} {self.platform}"]
        said += [f"{p.name}=={p.version} {' '.join(sorted(p.hashes))}" for _, p in sorted(self.pinned.items())]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()

    def text(self) -> str:
        """The file, always the same for the same lock."""
        head = [MADE_BY, f"# packages: {self.packages}", f"# python: {self.python}", f"# platform: {self.platform}"]
        return "\n".join([*head, *(line for _, p in sorted(self.pinned.items()) for line in p.lines())]) + "\n"

    def requirements(self) -> str:
        """What a node installs from: without comments."""
        lines = (line for _, p in sorted(self.pinned.items()) for line in p.lines())
        return "".join(f"{line}\n" for line in lines if not line.lstrip().startswith("#"))


def declared_digest(packages: Mapping[str, str]) -> str:
    """SHA-256 (hex, 16 digits) of declared packages: the header says what a lock was made from."""
    said = sorted(f"{name}\t{pin}" for name, pin in packages.items())
    return "sha256:" + hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


class _Reader:
    """One pass over the lines of a lock."""

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.pinned: dict[str, Pinned] = {}
        self.flaws: list[Flaw] = []
        self._open: tuple[str, str, int] | None = None
        self._hashes: list[str] = []
        self._more = False  # the last line ended with a backslash
        self._built: tuple[str, str] | None = None

    def take(self, number: int, line: str) -> None:
        if self._more:
            self._hash(number, line)
        elif line.startswith("    "):
            self._below(number, line)
        else:
            self.close()
            self._top(number, line)

    def _hash(self, number: int, line: str) -> None:
        if found := _HASH.fullmatch(line):
            self._hashes.append(found[1])
            self._more = bool(found[2])
            return
        self.flaws.append(Flaw(number, len(line) - len(line.lstrip()) + 1, "lock-hash", {"found": line.strip()}))
        self._more = line.rstrip().endswith("\\")
        self._hashes.append("")  # it stands for one: said once is enough

    def _below(self, number: int, line: str) -> None:
        """What stands under the last hash of an entry."""
        if (found := _BUILT.fullmatch(line)) and self._open and found[2] in self._hashes:
            self._built = (found[1], found[2])
        else:
            self.flaws.append(Flaw(number, 5, "lock-line", {"found": line.strip()}))

    def _top(self, number: int, line: str) -> None:
        if found := _ENTRY.fullmatch(line):
            self._open, self._more = (found[1], found[2], number), True
        elif header := _HEADER.fullmatch(line):
            self.header[header[1]] = header[2]
        elif line and not line.startswith("#"):
            self.flaws.append(Flaw(number, 1, "lock-line", {"found": line.strip()}))

    def close(self) -> None:
        """The entry that is open is whole."""
        if self._open is None:
            return
        name, version, line = self._open
        key = canonical(name)
        if not self._hashes or self._more:
            self.flaws.append(Flaw(line, 1, "lock-cut", {"found": name}))
        elif key in self.pinned:
            self.flaws.append(Flaw(line, 1, "lock-twice", {"found": name, "line": self.pinned[key].line}))
        else:
            self.pinned[key] = Pinned(key, version, tuple(h for h in self._hashes if h), self._built, line)
        self._open, self._hashes, self._more, self._built = None, [], False, None


def parse(content: bytes) -> tuple[Lock | None, tuple[Flaw, ...]]:
    """The lock, or None and all that is wrong with its text. Never raises."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as e:
        bad = content[: e.start].count(b"\n") + 1
        return None, (Flaw(bad, 1, "lock-line", {"found": "bytes that are not UTF-8"}),)
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(number, line)
    reader.close()
    missing = [key for key in ("packages", "python", "platform") if key not in reader.header]
    if missing and not reader.flaws:
        reader.flaws.append(Flaw(1, 1, "lock-header", {"found": missing[0]}))
    if reader.flaws:
        return None, tuple(reader.flaws)
    head = reader.header
    return Lock(head["packages"], head["python"], head["platform"], reader.pinned), ()
