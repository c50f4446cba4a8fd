"""/etc/hosts: our block in it, and what all other lines say."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.facts import file, raw
from reconciler.model.fact import Fact, Facts, Probe, Read, Stat, Unknown, Value

PATH = "/etc/hosts"
KEY = "hosts-file"
PROBE = Probe(KEY, (Stat(PATH), Read(PATH)))
BEGIN, END = b"# BEGIN reconcile", b"# END reconcile"


@dataclass(frozen=True, slots=True)
class HostsFile:
    """The bytes before our block, the block with its marks (None: there is none, and all is `before`), and those after it."""

    before: bytes
    block: bytes | None
    after: bytes

    @property
    def content(self) -> bytes:
        return self.before + (self.block or b"") + self.after

    def with_block(self, lines: str) -> bytes:
        """The file with `lines` as its block: in its place, or at the end. All else stays byte for byte."""
        unended = self.block is None and self.before and not self.before.endswith(b"\n")
        return self.before + (b"\n" if unended else b"") + block_of(lines) + self.after

    def lines(self) -> tuple[str, ...]:
        """What stands in our block, without its marks."""
        return tuple(_text(line).rstrip("\r\n") for line in _lines(self.block or b"")[1:-1])

    def others(self) -> Iterator[tuple[int, str, tuple[str, ...]]]:
        """Number, address and names of each line outside our block that says any; hosts(5): from # on it is a comment."""
        skipped = (self.block or b"").count(b"\n")
        first = self.before.count(b"\n") + skipped + 1
        for start, part in ((1, self.before), (first, self.after)):
            for number, line in enumerate(_text(part).split("\n"), start):
                words = line.partition("#")[0].split()
                if len(words) > 1 and is_address(words[0]):
                    yield number, words[0], tuple(words[1:])


def block_of(lines: str) -> bytes:
    """Our block with its marks."""
    return BEGIN + b"\n" + lines.encode() + END + b"\n"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def parse(content: bytes) -> Fact[HostsFile]:
    """Unknown(BlockDamaged) where the marks are not one BEGIN and one END after it: where our lines end cannot be known then."""
    lines = _lines(content)
    marks = [(i, line.strip()) for i, line in enumerate(lines) if line.strip() in (BEGIN, END)]
    if not marks:
        return Value(HostsFile(content, None, b""))
    if [mark for _, mark in marks] != [BEGIN, END]:
        return Unknown("BlockDamaged", ", ".join(f"line {i + 1}: {mark.decode()}" for i, mark in marks[:8]))
    begin, end = marks[0][0], marks[1][0] + 1
    return Value(HostsFile(b"".join(lines[:begin]), b"".join(lines[begin:end]), b"".join(lines[end:])))


def _lines(content: bytes) -> list[bytes]:
    """Split at line feeds alone: a carriage return is part of its line."""
    pieces = content.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def read(facts: Facts) -> Fact[HostsFile | None]:
    """The file as it is; Value(None) where there is none; Unknown(NotAFile) where something else stands at its path."""
    place = file.parse(raw.file_text(raw.part(facts, KEY)))
    if not isinstance(place, Value):
        return place
    if place.value.entry is None:
        return Value(None)
    if place.value.entry.type != "file":
        return Unknown("HostsNotAFile", place.value.entry.type)
    answer = raw.part(facts, KEY, 1)
    text = raw.file_text(answer)
    if answer is None or not isinstance(text, Value):
        return text if isinstance(text, Unknown) else Unknown("NotReadable", "it went while it was looked at")
    return parse(answer.out)
