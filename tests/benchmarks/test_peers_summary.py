"""Raw rows to cells, ratios and the page: small made-up runs whose figures can be checked by head."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.peers import report, work
from benchmarks.peers.summary import TOOLS, axes, cells, further, ratio

CPU_MS = {"reconcile": (300, 10), "ansible": (2000, 2000), "mitogen": (4000, 1500), "pyinfra": (700, 250)}  # fixed, a node


def _row(tool: str, part: str, nodes: int, trip: int, repeat: int, share: float) -> dict[str, Any]:
    fixed, each = CPU_MS[tool]
    wall = 1 + 0.2 * repeat
    cost = {"wall": wall, "cpu": (fixed + each * nodes) / 1000, "sent": 3000 * nodes, "received": 9000 * nodes}
    counted = {"turns": 8 * nodes, "connections": 2 * nodes, "node_cpu": 0.4 * nodes}
    shared = {key: value * share for key, value in {**cost, **counted}.items()}
    return {"tool": tool, "part": part, "nodes": nodes, "round_trip": trip, "repeat": repeat, "load": 0.5, **shared}


def _kept() -> dict[str, Any]:
    rows = [
        _row(tool, part, nodes, trip, repeat, share)
        for nodes in (1, 32)
        for trip in (0, 10)
        for repeat in range(3)
        for tool in TOOLS
        for part, share in (("plan", 0.75), ("facts", 0.25))
    ]
    named = ("python", "our python", "ansible-core", "mitogen", "pyinfra", "paramiko", "openssh")
    where = {
        "commit": "0123456789abcdef",
        "ahead": ["A change"],
        "changed": "",
        "date": "2026-11-30",
        "cores": 2,
        "processor": "x",
        "memory_gib": 4,
    }
    return {
        "conditions": {**where, "kernel": "6", "versions": dict.fromkeys(named, "1.0"), "stand_in": "lab nodes stand for servers"},
        "repeats": {"1": 3, "32": 3},
        "work": {"tasks": work.TASKS, "resources": work.RESOURCES, "facts": work.FACTS},
        "equality": {"tools": TOOLS, "drift": ["/etc/motd"], "facts": {}},
        "round_trips": {"0": 0.1, "10": 10.1},
        "rows": rows,
    }


def test_parts_of_one_repeat_are_added_and_repeats_are_not() -> None:
    cell = cells(_kept()["rows"])["reconcile", 32, 0]
    assert (cell.repeats, round(cell.cpu_ms, 3)) == (3, round((300 + 320) / 32, 3))
    assert (cell.sent_kb, cell.received_kb, cell.turns, cell.connections) == (3, 9, 8, 2)
    assert [round(w, 3) for w in (cell.wall, *cell.wall_range)] == [1.2, 1.0, 1.4]


@pytest.mark.parametrize(("part", "share"), [("plan", 0.75), ("facts", 0.25)])
def test_one_part_can_be_looked_at_alone(part: str, share: float) -> None:
    whole, alone = cells(_kept()["rows"]), cells(_kept()["rows"], part)
    assert set(alone) == set(whole)
    assert alone["reconcile", 1, 0].cpu_ms == pytest.approx(whole["reconcile", 1, 0].cpu_ms * share)
    assert axes(alone) == ([1, 32], [0, 10])


def test_a_ratio_is_how_often_ours_goes_into_it() -> None:
    assert ratio(cells(_kept()["rows"]), "ansible", 32, 10) == pytest.approx((2000 + 2000 * 32) / (300 + 10 * 32))


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_fixed_is_told_from_what_each_node_adds(tool: str) -> None:
    slope, fixed = further(cells(_kept()["rows"]), tool, 0)
    assert (round(slope, 6), round(fixed, 6)) == (CPU_MS[tool][1], CPU_MS[tool][0] / 1000)


def test_raw_results_are_json_with_one_row_a_line() -> None:
    kept = _kept()
    text = report.as_json(kept)
    assert json.loads(text)["rows"] == kept["rows"]
    assert sum(line.strip().startswith('{"tool"') for line in text.splitlines()) == len(kept["rows"])


def test_the_page_says_every_cell_the_targets_and_the_stand_in() -> None:
    page = report.markdown(_kept())
    assert page.count("\n| 1 | ") == page.count("\n| 32 | ") == 4 * len(TOOLS)
    assert "STAND-IN: lab nodes stand for servers" in page
    assert "| ansible | 106.5 | 106.5 | 106.5 | 106.5 | 106.5 | 106.5 | 20.0 |" in page
    assert "{" not in page
