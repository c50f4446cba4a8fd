"""Training data are checked as fast as was promised, with and without tokens, and in bounded memory: the committed measurements."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from acceptance.claims import ROOT, Claims, say
from benchmarks.data_check_page import MEMORY, RATE, SHARE, page

RAW = ROOT / "benchmarks" / "results" / "data_check.json"
LARGE = 10_000  # MB, of the file that has to be checked in MEMORY


def rates(claims: Claims, records: Sequence[Mapping[str, float]]) -> None:
    """Without tokens, by the mean size of a row."""
    by_size: dict[int, list[float]] = defaultdict(list)
    for record in records:
        by_size[round(record["mb"] * 1e6 / record["rows"])].append(record["mb"] / record["cpu"])
    claims.check("rows of several sizes were checked without tokens", len(by_size) > 1, sorted(by_size))
    for size, found in sorted(by_size.items()):
        rate = statistics.median(found)
        claims.check(f"rows of {size:,} bytes: {RATE:.0f} MB/s of CPU", rate >= RATE, f"{rate:.1f} of {len(found)} calls")


def main() -> int:
    claims = Claims("data check speed", "")
    say("benchmarks/results/data_check.json (python -m benchmarks.data_check)")
    kept = json.loads(RAW.read_text(encoding="utf-8"))
    rates(claims, kept["rates"])
    shares = [record["bare_cpu"] / record["cpu"] for record in kept["tokens"]]
    share = statistics.median(shares) if shares else 0.0
    claims.check(f"with tokens: {SHARE:.0%} of the bare tokenizer's rate", share >= SHARE, f"{share:.0%}, {len(shares)} turns")
    largest = max(kept["memory"], key=lambda record: record["mb"])
    evidence = f"{largest['mb']:,.0f} MB in {largest['resident']:.0f} MB"
    claims.check(f"10 GB in less than {MEMORY:,.0f} MB", largest["mb"] >= LARGE and largest["resident"] < MEMORY, evidence)
    written = RAW.with_suffix(".md").read_text(encoding="utf-8")
    claims.check("the page is what the records come to", written == page(kept), f"{len(written)} characters")
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
