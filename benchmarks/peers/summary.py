"""Raw rows to cells: medians and spreads by tool, number of nodes and round trip, and the ratios to ours."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
OURS, PEERS = "reconcile", ("ansible", "mitogen", "pyinfra")
TOOLS = (OURS, *PEERS)
TARGETS = {"ansible": 20.0, "pyinfra": 5.0}  # times our controller CPU a node, at 32 nodes
SUMMED = ("wall", "cpu", "sent", "received", "turns", "connections", "node_cpu")


@dataclass(frozen=True)
class Cell:
    """Of one tool, number of nodes and round trip; medians of the repeats. Seconds of the whole, the rest a node."""

    tool: str
    nodes: int
    round_trip: float
    repeats: int
    wall: float
    wall_range: tuple[float, float]
    cpu_ms: float
    cpu_range_ms: tuple[float, float]
    sent_kb: float
    received_kb: float
    turns: float
    connections: float
    node_cpu_ms: float


def cells(rows: Iterable[Row], part: str | None = None) -> dict[tuple[str, int, float], Cell]:
    """By tool, nodes, round trip, of one part of the work; None: the parts of one repeat are added."""
    wholes: dict[tuple[str, int, float], dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in rows:
        if part in (None, row["part"]):
            for name in SUMMED:
                wholes[row["tool"], row["nodes"], row["round_trip"]][row["repeat"]][name] += row[name]
    return {key: _cell(key, list(repeats.values())) for key, repeats in wholes.items()}


def _cell(key: tuple[str, int, float], repeats: list[dict[str, float]]) -> Cell:
    nodes = key[1]
    middle = {name: statistics.median(r[name] for r in repeats) for name in SUMMED}
    walls, cpus = sorted(r["wall"] for r in repeats), sorted(r["cpu"] / nodes * 1000 for r in repeats)
    return Cell(
        *key,
        len(repeats),
        middle["wall"],
        (walls[0], walls[-1]),
        middle["cpu"] / nodes * 1000,
        (cpus[0], cpus[-1]),
        middle["sent"] / nodes / 1000,
        middle["received"] / nodes / 1000,
        middle["turns"] / nodes,
        middle["connections"] / nodes,
        middle["node_cpu"] / nodes * 1000,
    )


def axes(found: Mapping[tuple[str, int, float], Cell]) -> tuple[list[int], list[float]]:
    """Which numbers of nodes and which round trips there are, from the least."""
    return sorted({nodes for _, nodes, _ in found}), sorted({trip for _, _, trip in found})


def ratio(found: Mapping[tuple[str, int, float], Cell], tool: str, nodes: int, round_trip: float) -> float:
    """How many times our controller CPU the tool uses."""
    return found[tool, nodes, round_trip].cpu_ms / found[OURS, nodes, round_trip].cpu_ms


def further(found: Mapping[tuple[str, int, float], Cell], tool: str, round_trip: float) -> tuple[float, float]:
    """Controller CPU: milliseconds of each further node between the fewest and the most nodes, and the seconds that are fixed."""
    sizes = sorted(nodes for t, nodes, trip in found if (t, trip) == (tool, round_trip))
    few, many = (found[tool, n, round_trip].cpu_ms * n for n in (sizes[0], sizes[-1]))
    slope = (many - few) / max(1, sizes[-1] - sizes[0])
    return slope, (few - slope * sizes[0]) / 1000
