"""From what was counted and which rows are alike to the report: who leaks, who repeats, what stops training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trainer.data.groups import Groups
from trainer.data.report import STOPS, WARNINGS, Example, Finding, Report

if TYPE_CHECKING:
    from trainer.data.check import Pass


def report(over: Pass, found: Groups, validation: np.ndarray) -> Report:
    """The whole report; `validation` says of each row whether it is on that side."""
    tally, asked = over.tally, over.asked
    findings = tally.findings(over.where)
    for finding in (*_of_the_whole(over, validation), *_alike(over, found, validation)):
        findings[finding.code] = finding
    return Report(
        asked=asked,
        digest=over.whole.hexdigest(),
        rows=tally.rows,
        training=int((~validation).sum()),
        validation=int(validation.sum()),
        formats=dict(sorted(tally.formats.items())),
        languages=dict(tally.languages.most_common()),
        characters=tally.characters.summary(),
        tokens=tally.tokens.summary(),
        duplicates=findings["Duplicates"].count if "Duplicates" in findings else 0,
        near_duplicates=findings["NearDuplicates"].count if "NearDuplicates" in findings else 0,
        samples=tuple(tally.samples.values()),
        findings=tuple(findings[code] for code in (*STOPS, *WARNINGS) if code in findings),
    )


def _of_the_whole(over: Pass, validation: np.ndarray) -> Iterator[Finding]:
    rows, formats, asked = over.tally.rows, over.tally.formats, over.asked
    if not rows:
        yield Finding("NoRows", 1)
    if len(formats) > 1:
        yield Finding("MixedFormats", rows - max(formats.values()), tuple(over.tally.first.values()))
    if over.lacks_template:
        yield Finding("NoChatTemplate", 1)
    if asked.validation or asked.share:
        if rows and not validation.any():
            yield Finding("NothingToValidate", 1)
    else:
        yield Finding("TrainsOnEverything", 1)


def _alike(over: Pass, found: Groups, validation: np.ndarray) -> Iterator[Finding]:
    """Equal and nearly equal rows, on one side (repeated) and across (leaking)."""
    show = over.options.show
    leaks, near, equal, alike = sides(found, validation)
    for code, how, these in (("Leakage", "equal to", leaks), ("NearLeakage", "nearly equal to", near)):
        rows = np.flatnonzero(these < len(these))
        if len(rows):
            yield Finding(code, len(rows), tuple(over.alike(int(row), int(these[row]), how) for row in rows[:show]))
    if equal:
        same_side = validation[found.equal] == validation
        rows = np.flatnonzero((found.equal != np.arange(len(found.equal), dtype=np.uint32)) & same_side)[:show]
        yield Finding("Duplicates", equal, tuple(over.alike(int(row), int(found.equal[row]), "equal to") for row in rows))
    if alike:
        pairs = [pair for pair in found.pairs if validation[pair.first] == validation[pair.row]][:show]
        yield Finding("NearDuplicates", alike, tuple(_near(over, pair.row, pair.first, pair.similarity) for pair in pairs))


def sides(found: Groups, validation: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Leaks of equal rows and of nearly equal ones (`_leaks`), and how many rows are repeated on their own side (`_repeated`)."""
    leaks, near = _leaks(found.equal, validation), _leaks(found.near, validation)
    near[leaks < len(leaks)] = len(leaks)  # told already
    return leaks, near, *_repeated(found, validation)


def _near(over: Pass, row: int, first: int, similarity: float) -> Example:
    return over.alike(row, first, f"about {similarity:.0%} like")


def _leaks(group: np.ndarray, validation: np.ndarray) -> np.ndarray:
    """For each row the first training row of its group, where the row is validation and there is one; else the number of rows."""
    none = np.uint32(len(group))
    first = np.full(len(group), none, np.uint32)
    training = np.flatnonzero(~validation).astype(np.uint32)[::-1]
    first[group[training]] = training  # written from the last to the first, so that the first stays
    return np.where(validation, first[group], none)


def _repeated(found: Groups, validation: np.ndarray) -> tuple[int, int]:
    """Rows equal, and rows only nearly equal, to another one of their own side, the first of each group not counted."""
    equal = alike = 0
    for side in (validation, ~validation):
        different, groups = _distinct(found.equal[side], len(side)), _distinct(found.near[side], len(side))
        equal += int(side.sum()) - different
        alike += different - groups
    return equal, alike


def _distinct(values: np.ndarray, size: int) -> int:
    seen = np.zeros(size, bool)
    seen[values] = True
    return int(seen.sum())
