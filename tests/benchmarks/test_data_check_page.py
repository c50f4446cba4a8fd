"""The page of the data check's benchmark: figures from records, and the page that is kept is of the records that are kept."""

from __future__ import annotations

import json

from benchmarks.data_check_page import page
from tools.sources import ROOT

RESULTS = ROOT / "benchmarks" / "results"
KEPT = {
    "conditions": {"cores": 2, "machine": "x86_64", "versions": {"Python": "3.11.7"}},
    "rates": [{"mb": 20.0, "rows": 40_000, "cpu": cpu, "wall": 1.0} for cpu in (0.5, 1.0, 0.8)],
    "tokens": [{"mb": 10.0, "bare_wall": 2.0, "bare_cpu": 3.0, "wall": wall, "cpu": 4.0} for wall in (2.5, 4.0, 2.5)],
    "memory": [
        {"mb": 500.0, "rows": 1_000_000, "resident": 100.0, "wall": 20.0, "cpu": 10.0},
        {"mb": 2000.0, "rows": 4_000_000, "resident": 190.0, "wall": 50.0, "cpu": 40.0},
    ],
    "rows": [{"rows": 10_000_000, "resident": 300.4, "cpu": 41.2}],
}


def test_figures_come_from_the_records() -> None:
    lines = page(KEPT).splitlines()
    assert "| 500 B | 40,000 | 20.0 | 25.0 | 40.0 |" in lines
    assert "| 2 | 5.00 | 2.50 | 50% | 3.33 | 2.50 | 75% |" in lines
    assert "| median | | | **80%** | | | **75%** |" in lines
    assert "| 2,000 | 4,000,000 | 190 | 50.0 | 40.0 |" in lines
    assert "From the smallest to the largest: 30 bytes more for each row." in lines
    assert lines[-2:] == [
        "After reading, equal and nearly equal rows among 10,000,000 (random notes, nothing read) take",
        "300 MB and 41 s of CPU.",
    ]


def test_the_page_that_is_kept_is_of_the_records_that_are_kept() -> None:
    kept = json.loads((RESULTS / "data_check.json").read_text(encoding="utf-8"))
    assert (RESULTS / "data_check.md").read_text(encoding="utf-8") == page(kept)
