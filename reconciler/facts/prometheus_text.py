"""Prometheus' text format, line by line: a line that cannot be read takes no other with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reconciler.facts import raw, scalars
from reconciler.model.fact import Absent, Fact, Unknown, Value

_SAMPLE = re.compile(r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\s*\{(.*)\})?\s+(\S+)(?:\s+-?[0-9]{1,20})?\s*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\"}
_ESCAPE = re.compile(r"\\.")


@dataclass(frozen=True, slots=True)
class Sample:
    """One series' value. NaN, which says that there is none, is Unknown(NotANumber), as is an infinite one."""

    name: str
    labels: dict[str, str]
    value: Fact[float]


@lru_cache(maxsize=4096)
def _labels(said: str) -> dict[str, str] | None:
    """`a="b",c="d",`; None where anything else stands between. Shared by all metrics of a GPU: never changed."""
    found: dict[str, str] = {}
    at = 0
    while at < len(said):
        label = _LABEL.match(said, at)
        if not label:
            return found if not said[at:].strip() else None
        value = label[2]
        found[label[1]] = _ESCAPE.sub(lambda e: _ESCAPES.get(e[0], e[0]), value) if "\\" in value else value
        at = label.end()
    return found


def sample(line: str) -> Sample | Unknown:
    """A line that is neither empty nor a comment."""
    found = _SAMPLE.fullmatch(line) if len(line) <= 20_000 else None
    labels = _labels(found[2] or "") if found else None
    if not found or labels is None:
        return Unknown("UnreadableLine", raw.clean(line[:400], 120))
    return Sample(found[1], labels, scalars.real(found[3]))


def samples(clean: str, prefix: str) -> Iterator[Sample | Unknown]:
    """All samples whose name begins with `prefix`, and the lines that begin so and are none, or have no end and may be cut."""
    lines, cut = scalars.ended(clean)
    for line in lines:
        if line.startswith(prefix) or (line[:1] in " \t" and line.lstrip().startswith(prefix)):
            yield sample(line)
    yield from (line for line in cut if line.detail.startswith(prefix))


def same(one: Fact[float] | None, other: Fact[float]) -> Fact[float]:
    """A series that stands twice: Unknown(Repeated) where its values differ."""
    if one is None or one == other:
        return other
    if isinstance(one, Value) and isinstance(other, Value):
        return Unknown("Repeated", f"{one.value} {other.value}")
    return Unknown("Repeated")


def without(clean: str, reason: str) -> Absent | Unknown:
    """The answer where nothing wanted was found: another program's metrics, no metrics at all, or a text that is cut before."""
    if clean and not clean.endswith("\n"):
        return Unknown("Truncated")
    for line in clean.split("\n"):
        if line.strip() and not line.lstrip().startswith("#") and isinstance(sample(line), Sample):
            return Absent(reason)
    return Unknown("NotMetrics", raw.clean(clean[:400], 120))
