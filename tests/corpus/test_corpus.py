"""Outputs of real machines: every expected key is mapped to a path in the parsed value and compared exactly (cases.py)."""

from __future__ import annotations

from collections import Counter

import pytest

from reconciler.facts.formats import FORMATS
from tests.corpus.cases import CORPUS, FIELDS, ORIGINS, Case, cases, fields, judge


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_sample(case: Case) -> None:
    judged = list(judge(case, case.parsed()))
    assert judged, "a sample of which nothing is expected proves nothing"
    assert [found for found in judged if found.verdict == "wrong"] == []


def test_every_sample_and_every_mapping_is_used() -> None:
    assert Counter(case.origin for case in cases()) == ORIGINS
    assert {case.format for case in cases()} == set(FORMATS) == {path.stem for path in FIELDS.glob("*.yaml")}
    kept = {path for path in CORPUS.glob("*/*") if not path.name.endswith(".meta.yaml")}
    assert kept == {case.path for case in cases()}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_mapping_is_left_over(name: str) -> None:
    """A key or a sample that is named and not there would be a case that nobody runs."""
    expected = {case.sample: set(case.expected) for case in cases() if case.format == name}
    mapped = fields(name)
    assert set(mapped) <= {"paths", "only", "explained", "added"}
    assert set(mapped["paths"]) == set().union(*expected.values())
    for part in ("only", "explained", "added"):
        for sample, keys in mapped.get(part, {}).items():
            assert set(keys) <= expected[sample], f"{part}: {sample}"
