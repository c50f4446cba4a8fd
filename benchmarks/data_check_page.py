"""The page of the data check's benchmark, from its records."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RATE, SHARE = 20.0, 0.70  # MB/s a core without tokens; of the bare tokenizer's rate with tokens
MEMORY = 1000.0  # MB for 10 GB
Record = Mapping[str, float]


def page(kept: Mapping[str, Any]) -> str:
    """Markdown of all records."""
    return "\n".join(_page(kept)) + "\n"


def _page(kept: Mapping[str, Any]) -> Iterator[str]:
    where = kept["conditions"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    yield "# Checking training data"
    yield ""
    yield f"`python -m benchmarks.data_check`, {where['cores']} cores ({where['machine']}) shared with other work, {versions}."
    yield "Made-up rows of messages; every figure is of whole calls, in which equal and nearly equal rows are looked for."
    yield ""
    yield f"## Without tokens: MB of the file a second of CPU (wanted: {RATE:.0f})"
    yield ""
    yield "Half Chinese, half English; imports and all."
    yield ""
    yield "| mean row | rows | worst | median | best |"
    yield "|---|---|---|---|---|"
    yield from _rates(kept["rates"])
    yield ""
    yield f"## With tokens: MB/s of rendered text on all cores (wanted: {SHARE:.0%} of the bare tokenizer)"
    yield ""
    yield "Half Chinese, half English; a byte-level BPE of 32,000 tokens made of the same words. The two take turns in one process."
    yield "Wall time is what somebody waits, and suffers from other work; CPU is what it takes."
    yield ""
    yield "| turn | bare, wall | check, wall | share | bare, CPU | check, CPU | share |"
    yield "|---|---|---|---|---|---|---|"
    yield from _turns(kept["tokens"])
    yield ""
    yield f"## Memory: largest resident MB (wanted: under {MEMORY:.0f} for 10 GB)"
    yield ""
    yield "English, no row like another."
    yield ""
    yield "| file, MB | rows | resident, MB | MB/s of CPU | MB/s, wall |"
    yield "|---|---|---|---|---|"
    for record in kept["memory"]:
        rates = f"{record['mb'] / record['cpu']:.1f} | {record['mb'] / record['wall']:.1f}"
        yield f"| {record['mb']:,.0f} | {record['rows']:,.0f} | {record['resident']:.0f} | {rates} |"
    yield ""
    yield _slope(kept["memory"])
    for record in kept["rows"]:
        yield f"After reading, equal and nearly equal rows among {record['rows']:,.0f} (random notes, nothing read) take"
        yield f"{record['resident']:.0f} MB and {record['cpu']:.0f} s of CPU."


def _rates(records: Sequence[Record]) -> Iterator[str]:
    sizes: dict[tuple[float, float], list[float]] = defaultdict(list)
    for record in records:
        sizes[record["mb"], record["rows"]].append(record["mb"] / record["cpu"])
    for (size, rows), rates in sizes.items():
        figures = " | ".join(f"{rate:.1f}" for rate in (min(rates), statistics.median(rates), max(rates)))
        yield f"| {size * 1e6 / rows:,.0f} B | {rows:,.0f} | {figures} |"


def _turns(records: Sequence[Record]) -> Iterator[str]:
    wall = [record["bare_wall"] / record["wall"] for record in records]
    cpu = [record["bare_cpu"] / record["cpu"] for record in records]
    for turn, record in enumerate(records, start=1):
        rates = {key: record["mb"] / record[key] for key in ("bare_wall", "wall", "bare_cpu", "cpu")}
        first = f"{rates['bare_wall']:.2f} | {rates['wall']:.2f} | {wall[turn - 1]:.0%}"
        yield f"| {turn} | {first} | {rates['bare_cpu']:.2f} | {rates['cpu']:.2f} | {cpu[turn - 1]:.0%} |"
    if records:
        yield f"| median | | | **{statistics.median(wall):.0%}** | | | **{statistics.median(cpu):.0%}** |"


def _slope(records: Sequence[Record]) -> str:
    if len(records) < 2:
        return "One size says nothing of how memory grows."
    first, last = records[0], records[-1]
    slope = (last["resident"] - first["resident"]) / (last["rows"] - first["rows"]) * 1e6
    return f"From the smallest to the largest: {slope:.0f} bytes more for each row."
