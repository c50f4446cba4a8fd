"""Forms that programs print and that the corpus has no sample of: written by hand and compared exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.facts.formats import FORMATS, plain
from tests.cases import read_yaml
from tests.corpus.cut import OF_THE_TEXT, wrong
from tests.corpus.forms import same
from tests.corpus.nodes import at

VARIANTS = [
    (path.stem, case)
    for path in sorted((Path(__file__).parent.parent / "data" / "variants").glob("*.yaml"))
    for case in read_yaml(path)
]
each = pytest.mark.parametrize(("name", "case"), VARIANTS, ids=[f"{name}: {case['name']}" for name, case in VARIANTS])


@each
def test_variant(name: str, case: dict[str, Any]) -> None:
    value = plain(FORMATS[name](case["text"]))
    assert case["found"]
    for path, expected in case["found"]:
        found = at(value, path)
        if isinstance(expected, dict) and set(expected) == {"unknown"}:
            found = {"unknown": found["unknown"]} if isinstance(found, dict) and "unknown" in found else found
        assert same(found, expected), f"{path}: {found!r}, expected {expected!r}"


@each
def test_a_cut_variant_says_nothing_else(name: str, case: dict[str, Any]) -> None:
    text = case["text"]
    whole = plain(FORMATS[name](text))
    ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    for at_ in sorted({*range(1, len(text), max(len(text) // 100, 1)), *ends}):
        cut = plain(FORMATS[name](text[:at_]))
        assert list(wrong(cut, whole, OF_THE_TEXT.get(name, frozenset()))) == [], f"cut behind {at_} characters"
