"""The report in words and a table, for a terminal: the verdict first."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.data.lengths import Summary
from trainer.data.report import Finding, Report

WORDS = {
    "NoRows": "there is no row at all",
    "Malformed": "malformed: no row of a known format",
    "Empty": "empty: a turn says nothing",
    "RoleOrder": "roles out of order",
    "MixedFormats": "rows of another format than most: each is trained on in its own way, so keep one",
    "NoChatTemplate": "the tokenizer has no chat template, so conversations cannot be written for it",
    "TemplateRefuses": "refused by the chat template",
    "Leakage": "validation rows that are equal to a training row",
    "NothingToValidate": "no row is left for validation",
    "NearLeakage": "validation rows that are nearly equal to a training row",
    "Duplicates": "rows that are equal to an earlier one",
    "NearDuplicates": "rows that are nearly equal to an earlier one",
    "OverLength": "rows longer than the limit: they would be cut",
    "TrainsOnEverything": "everything is trained on (--split 0): nothing tells when it learns by heart",
    "UnreadKeys": "rows with keys that are not read",
}
_WITHOUT_COUNT = {"NoRows", "NoChatTemplate", "NothingToValidate", "TrainsOnEverything"}


def verdict(report: Report) -> str:
    """One line: may this be trained on?"""
    stops = [finding for finding in report.findings if finding.stops]
    others = len(report.findings) - len(stops)
    notes = f", {_many(others, 'warning')}" if others else ""
    if stops:
        return f"STOP: {report.asked.source}: {_many(len(stops), 'finding')} to mend before training{notes}"
    return f"GOOD: {report.asked.source}: can be trained on{notes}"


def said(finding: Finding) -> str:
    """One finding, with how many rows it is about."""
    return WORDS[finding.code] if finding.code in _WITHOUT_COUNT else f"{finding.count:,} {WORDS[finding.code]}"


def table(report: Report) -> list[tuple[str, str]]:
    """What was counted, as (name, value)."""
    return list(_table(report))


def _table(report: Report) -> Iterator[tuple[str, str]]:
    asked = report.asked
    how = asked.validation or (f"{asked.share:.4g} of it, seed {asked.seed}" if asked.share else "none")
    yield "rows", f"{report.rows:,}"
    yield "training, validation", f"{report.training:,}, {report.validation:,} ({how})"
    yield "formats", shares(report.formats, report.rows)
    yield "languages", shares(report.languages, report.rows)
    yield "characters a row", _summary(report.characters)
    tokens = _summary(report.tokens) if asked.tokenizer else "not counted (--tokenizer DIR)"
    yield "tokens a row", tokens
    if report.tokens:
        yield "tokens", f"{report.tokens.total:,}"
    over = report.found("OverLength")
    if asked.max_length:
        yield f"over {asked.max_length:,} tokens", share(over.count if over else 0, report.rows)
    yield "duplicates", share(report.duplicates, report.rows)
    yield "near duplicates", share(report.near_duplicates, report.rows)
    yield "digest", report.digest[:16]


def share(count: int, rows: int) -> str:
    """A count with its share of the rows."""
    return f"{count:,} ({count / rows:.2%})" if rows else f"{count:,}"


def shares(counts: object, rows: int) -> str:
    """`name count (share), ...` of a mapping of counts."""
    assert isinstance(counts, dict)
    return ", ".join(f"{name} {share(count, rows)}" for name, count in counts.items()) or "none"


def _summary(found: Summary | None) -> str:
    if found is None:
        return "none"
    return f"mean {found.mean:,.1f}, median {found.median:,}, 95% {found.p95:,}, 99% {found.p99:,}, largest {found.largest:,}"


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def lines(report: Report) -> Iterator[str]:
    """All of it: verdict, findings with their first places, table."""
    yield verdict(report)
    for finding in report.findings:
        yield ""
        yield f"{'stop' if finding.stops else 'warn'}  {said(finding)}"
        for example in finding.examples:
            yield f"      {example.where}  {example.what}"
        if len(finding.examples) < finding.count and finding.examples and finding.code != "UnreadKeys":
            yield f"      ... and {finding.count - len(finding.examples):,} more (--show {finding.count})"
    yield ""
    for name, value in table(report):
        yield f"{name:<22}{value}"
