"""Words, table and page of a report: from reports made by hand."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree

import pytest

from trainer.data import page, plots, words
from trainer.data.lengths import Lengths, Summary
from trainer.data.report import STOPS, WARNINGS, Asked, Example, Finding, Report

NASTY = '<script>alert("红") & co</script>'


def lengths(*found: int) -> Summary:
    counted = Lengths()
    for length in found:
        counted.add(length)
    summary = counted.summary()
    assert summary is not None
    return summary


def report(*findings: Finding, tokens: Summary | None = None, max_length: int = 0) -> Report:
    return Report(
        asked=Asked("data/train.jsonl", "", 0.05, 42, "model" if tokens else "", max_length),
        digest="ab" * 32,
        rows=1200,
        training=1140,
        validation=60,
        formats={"messages": 1200},
        languages={"chinese": 700, "english": 500},
        characters=lengths(10, 20, 3000),
        tokens=tokens,
        duplicates=0,
        near_duplicates=0,
        samples=(Example("data/train.jsonl:1", "chinese", "你好"),),
        findings=findings,
    )


EMPTY = dataclasses.replace(
    report(Finding("NoRows", 1)), rows=0, training=0, validation=0, formats={}, languages={}, characters=None, samples=()
)


def parsed(text: str) -> ElementTree.Element:
    """The page's body; its parser takes nothing that is not well-formed."""
    return ElementTree.fromstring(text[text.index("<body>") : text.index("</body>")] + "</body>")


def test_every_finding_has_its_words() -> None:
    assert set(words.WORDS) == {*STOPS, *WARNINGS}
    assert len({*STOPS, *WARNINGS}) == len(STOPS) + len(WARNINGS)


@pytest.mark.parametrize("code", [*STOPS, *WARNINGS])
def test_only_what_has_to_be_mended_stops(code: str) -> None:
    one = report(Finding(code, 3))
    assert one.good == (code in WARNINGS)
    assert words.verdict(one).startswith("GOOD: " if one.good else "STOP: ")


def test_the_verdict_comes_first_then_findings_with_places_then_the_table() -> None:
    examples = (Example("data/train.jsonl:7", "NaN is no JSON number"), Example("data/train.jsonl:9", "said twice: 'a'"))
    told = list(words.lines(report(Finding("Malformed", 3, examples), Finding("Duplicates", 1))))
    assert told[:9] == [
        "STOP: data/train.jsonl: 1 finding to mend before training, 1 warning",
        "",
        "stop  3 malformed: no row of a known format",
        "      data/train.jsonl:7  NaN is no JSON number",
        "      data/train.jsonl:9  said twice: 'a'",
        "      ... and 1 more (--show 3)",
        "",
        "warn  1 rows that are equal to an earlier one",
        "",
    ]
    assert told[9].split() == ["rows", "1,200"]
    assert told[10].split(maxsplit=2) == ["training,", "validation", "1,140, 60 (0.05 of it, seed 42)"]


def test_the_report_as_json_has_everything() -> None:
    told = json.loads(json.dumps(report(Finding("Empty", 1, (Example("a:1", "x", "y"),)), tokens=lengths(5)).to_json()))
    assert (told["version"], told["good"], told["rows"]) == (1, False, 1200)
    assert told["findings"] == [
        {"code": "Empty", "stops": True, "count": 1, "examples": [{"where": "a:1", "what": "x", "text": "y", "other": ""}]}
    ]
    assert told["tokens"]["histogram"][-1] == {"low": 5, "high": 6, "count": 1}


@pytest.mark.parametrize(
    "made", [report(), report(tokens=lengths(1, 2, 900), max_length=500), EMPTY], ids=["plain", "tokens", "empty"]
)
def test_the_page_is_well_formed_needs_nothing_else_and_is_the_same_again(made: Report) -> None:
    text = page.html(made)
    assert text == page.html(made)
    body = parsed(text)
    assert body.find(".//h1") is not None
    assert [word for word in ("http:", "https:", "src=", "<script", "<link", "@import", "url(") if word in text] == []
    assert len(body.findall(".//svg")) == (0 if made is EMPTY else 4 + bool(made.tokens))


def test_what_rows_say_is_text_on_the_page() -> None:
    finding = Finding("NearDuplicates", 2, (Example(f"data/{NASTY}:1", NASTY, NASTY, NASTY),))
    text = page.html(report(finding))
    assert "<script>" not in text
    assert text.count("&lt;script&gt;alert(&quot;红&quot;) &amp; co&lt;/script&gt;") == 4
    parsed(text)


def test_chinese_rows_are_marked_as_chinese() -> None:
    body = parsed(page.html(report()))
    assert [p.get("lang") for p in body.iter("p") if p.text == "你好"] == ["zh"]


def test_places_are_shown_without_the_folder_that_all_of_them_are_in() -> None:
    finding = Finding("Leakage", 1, (Example("data/held.jsonl:2", "equal to data/train.jsonl:1"),))
    cells = ["".join(cell.itertext()) for cell in parsed(page.html(report(finding))).iter("td")]
    assert cells[:2] == ["held.jsonl:2", "equal to train.jsonl:1"]


def bars(svg: str) -> list[ElementTree.Element]:
    return [rect for rect in ElementTree.fromstring(svg).iter("rect") if str(rect.get("class")).startswith("bar")]


def test_a_histogram_draws_every_bar_to_its_height_within_its_frame() -> None:
    svg = plots.histogram(lengths(*[5] * 30, *[15] * 60, *[400] * 3), "tokens", 300)
    drawn = bars(svg)
    heights = [float(bar.attrib["height"]) for bar in drawn]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert [bar.get("class") for bar in drawn] == ["bar", "bar", "bar over"]
    for bar in drawn:
        left, top = float(bar.attrib["x"]), float(bar.attrib["y"])
        assert left > 0
        assert left + float(bar.attrib["width"]) < plots.WIDTH
        assert top > 0
        assert top + float(bar.attrib["height"]) < plots.HEIGHT
    assert "limit 300" in svg
    assert "3 rows" in svg


def test_parts_of_a_bar_fill_it() -> None:
    parts = list(ElementTree.fromstring(plots.shares({"a": 3, "b": 0, "c": 1})).iter("rect"))
    widths = [float(part.attrib["width"]) for part in parts if part.get("height") == "26"]
    assert widths == [plots.WIDTH * 3 / 4 - 2, plots.WIDTH / 4 - 2]
