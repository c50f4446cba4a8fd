"""The report as one HTML page that needs nothing else: no network, no script. The same report gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from trainer.data import plots, words
from trainer.data.language import language
from trainer.data.report import Example, Finding, Report
from trainer.data.style import STYLE


def html(report: Report) -> str:
    """The whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(words.verdict(report))}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(_body(report))
        + "\n</body></html>\n"
    )


def digest(page: str) -> str:
    """What a picture of the page is marked with."""
    return hashlib.sha256(page.encode()).hexdigest()


def _body(report: Report) -> Iterator[str]:
    yield _head(report)
    yield f'<section class="tiles">{"".join(_tiles(report))}</section>'
    if report.findings:
        yield _section("Findings", "".join(_finding(finding, _folder(report)) for finding in report.findings))
    if report.tokens:
        limit = report.asked.max_length
        over = report.found("OverLength")
        said = f"{words.share(over.count if over else 0, report.rows)} of the rows are over {limit:,} tokens." if limit else ""
        yield _section("Tokens", plots.histogram(report.tokens, "tokens", limit) + _note(said))
    if report.characters:
        yield _section("Characters", plots.histogram(report.characters, "characters"))
    if report.rows:
        yield _section("Languages", plots.shares(report.languages) + _note("By script: Han, Latin, and all others."))
        yield _section("Formats", plots.shares(report.formats))
        yield _section("Split", plots.shares({"training": report.training, "validation": report.validation}))
        yield _section("Rows as they are", _samples(report))
    yield _section("All figures", _figures(report))


def _head(report: Report) -> str:
    state, _, rest = words.verdict(report).partition(": ")
    kind = "good" if report.good else "stop"
    return f'<header class="{kind}"><p class="state">{state}</p><h1>{escape(rest)}</h1></header>'


def _tiles(report: Report) -> Iterator[str]:
    yield _tile("rows", f"{report.rows:,}")
    yield _tile("training / validation", f"{report.training:,} / {report.validation:,}")
    malformed = report.found("Malformed")
    yield _tile("malformed", f"{malformed.count if malformed else 0:,}", bad=malformed is not None)
    yield _tile("duplicates", _percent(report.duplicates, report.rows))
    yield _tile("near duplicates", _percent(report.near_duplicates, report.rows))
    if report.tokens:
        yield _tile("tokens", f"{report.tokens.total:,}")
        yield _tile("tokens a row, mean", f"{report.tokens.mean:,.0f}")
        yield _tile("tokens a row, most", f"{report.tokens.largest:,}")


def _tile(name: str, value: str, bad: bool = False) -> str:
    return f'<div class="tile{" bad" if bad else ""}"><b>{value}</b><span>{name}</span></div>'


def _percent(count: int, rows: int) -> str:
    return f"{count / rows:.2%}" if rows else "0"


def _folder(report: Report) -> str:
    """What all places begin with, and is not repeated in each of them: the folder that the source lies in, or is."""
    source = report.asked.source
    return f"{source.rstrip('/')}/" if not Path(source).suffix else source[: source.rfind("/") + 1]


def _finding(finding: Finding, folder: str) -> str:
    kind = "stop" if finding.stops else "warn"
    told = "".join(_example(example, folder) for example in finding.examples)
    left = finding.count - len(finding.examples)
    more = _note(f"and {left:,} more") if finding.examples and left > 0 and finding.code != "UnreadKeys" else ""
    title = f"<i>{kind}</i>{escape(words.said(finding))}"
    if not told:
        return f'<article class="{kind}"><h3>{title}</h3></article>'
    shown = ' open=""' if finding.stops else ""
    return f'<details class="{kind}"{shown}><summary>{title}</summary><table>{told}</table>{more}</details>'


def _example(example: Example, folder: str) -> str:
    where, what = example.where.removeprefix(folder), example.what.replace(f" {folder}", " ") if folder else example.what
    texts = "".join(f'<p class="text"{_lang(text)}>{escape(text)}</p>' for text in (example.text, example.other) if text)
    return f'<tr><td class="where">{escape(where)}</td><td>{escape(what)}{texts}</td></tr>'


def _lang(text: str) -> str:
    """Han characters are drawn in another way for Japanese: say that these are Chinese."""
    return ' lang="zh"' if language(text.encode()) == "chinese" else ""


def _samples(report: Report) -> str:
    rows = "".join(_example(sample, _folder(report)) for sample in report.samples)
    return f"<table>{rows}</table>" + _note("The first row of each language.")


def _figures(report: Report) -> str:
    asked = report.asked
    more = [("tokenizer", asked.tokenizer or "none"), ("whole digest", report.digest)]
    rows = ((name, value) for name, value in (*words.table(report), *more) if name != "digest")
    return "<table>" + "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows) + "</table>"


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{title}</h2>{inside}</section>"


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>' if words else ""
