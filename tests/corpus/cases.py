"""Outputs of real machines and what they say: each expected key is exact, explained or wrong. Tests and the table count here.

`fields/FORMAT.yaml` holds
- `paths`: expected key -> path of keys and indices in the plain value, or a node of nodes.py;
- `only`: sample -> key -> the same, for one sample: a text without names does not say which value it is, or an expectation is
  written otherwise than in the other samples;
- `explained`: sample -> key -> [what is right, why], for expectations that the sample itself shows to be wrong;
- `added`: sample -> key -> value, by hand, for samples that came without expectations.

An expected null is met by what is absent or unknown. A key that is not mapped is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.facts.formats import FORMATS, plain
from tests.cases import read_yaml
from tests.corpus.nodes import differences

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
FIELDS = Path(__file__).parent / "fields"
ORIGINS = {"copied": 143, "retyped-from-excerpt": 66, "reconstructed": 9, "test-made": 9}


@dataclass(frozen=True)
class Judged:
    """One expected key. `told`: what differs, or why the expectation is wrong."""

    key: str
    verdict: str
    told: str = ""


@dataclass(frozen=True)
class Case:
    """One sample with what its meta says. `expected` holds what was added by hand too."""

    format: str
    sample: str
    origin: str
    odd: str
    path: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.format}/{self.sample}"

    def text(self) -> str:
        return self.path.read_bytes().decode("utf-8", "replace")

    def parsed(self) -> Any:
        """The whole answer as plain values."""
        return plain(FORMATS[self.format](self.text()))


@cache
def fields(name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(FIELDS / f"{name}.yaml")
    return found


def _case(meta: Path) -> Case:
    name, sample = meta.parent.name, meta.name.removesuffix(".meta.yaml")
    said = read_yaml(meta)
    (path,) = (p for p in meta.parent.glob(f"{sample}.*") if p != meta)
    expected = {**said["expected"], **fields(name).get("added", {}).get(sample, {})}
    return Case(name, sample, said["origin"], str(said.get("odd", "")), path, expected)


@cache
def cases() -> tuple[Case, ...]:
    """Every sample of the corpus, by format and name."""
    return tuple(_case(meta) for meta in sorted(CORPUS.glob("*/*.meta.yaml")))


def texts(name: str) -> list[str]:
    """The samples of a format."""
    return [case.text() for case in cases() if case.format == name]


def explanation(case: Case, key: str) -> tuple[Any, str] | None:
    """What is right instead of an expectation, and why."""
    found = fields(case.format).get("explained", {}).get(case.sample, {}).get(key)
    return (found[0], found[1]) if found else None


def judge(case: Case, value: Any) -> Iterator[Judged]:
    """All expected keys of a sample against its plain parsed value."""
    mapped = fields(case.format)
    for key, expected in case.expected.items():
        if key not in mapped["paths"]:
            yield Judged(key, "wrong", f"expected key {key!r} is not mapped")
            continue
        node = mapped.get("only", {}).get(case.sample, {}).get(key, mapped["paths"][key])
        reason = explanation(case, key)
        right = reason[0] if reason else expected
        if told := "; ".join(differences(value, right, node, key)):
            yield Judged(key, "wrong", told)
        elif reason:
            yield Judged(key, "explained" if list(differences(value, expected, node, key)) else "wrong", reason[1])
        else:
            yield Judged(key, "exact")
