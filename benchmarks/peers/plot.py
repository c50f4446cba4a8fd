"""The results as a picture, for the peers' own interpreter: python plot.py PEERS.JSON OUT writes OUT.svg and OUT.png."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = {"ansible": "#c0392b", "mitogen": "#e08e0b", "pyinfra": "#2471a3", "reconcile": "#1e8449"}
LABELS = {"ansible": "ansible --check", "mitogen": "with mitogen", "pyinfra": "pyinfra --dry", "reconcile": "reconcile"}
Points = Mapping[tuple[str, float], Sequence[tuple[int, float]]]


def medians(rows: Iterable[Mapping[str, Any]], part: str, keys: Sequence[str], each: bool) -> Points:
    """By tool and round trip: nodes, and the median of the repeats of the sum of `keys`, of one part of the work."""
    sums: dict[tuple[str, float, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["part"] == part:
            sums[row["tool"], row["round_trip"], row["nodes"]].append(sum(row[key] for key in keys))
    found: dict[tuple[str, float], list[tuple[int, float]]] = defaultdict(list)
    for (tool, trip, nodes), repeats in sorted(sums.items()):
        found[tool, trip].append((nodes, statistics.median(repeats) / (nodes if each else 1)))
    return found


def draw(axes: Any, found: Points, title: str, unit: str, scale: float) -> None:
    """One panel: a line a tool and distance, both axes logarithmic, the last value written beside its point."""
    for tool, colour in COLOURS.items():
        for trip, style in ((0, "-"), (10, "--")):
            points = found.get((tool, trip))
            if not points:
                continue
            xs, ys = [x for x, _ in points], [y * scale for _, y in points]
            axes.plot(xs, ys, style, marker="o", markersize=4, color=colour, label=f"{LABELS[tool]}, {trip} ms")
            if trip == 0:
                axes.annotate(
                    f"{ys[-1]:,.0f}" if ys[-1] >= 10 else f"{ys[-1]:.1f}",
                    (xs[-1], ys[-1]),
                    xytext=(6, -3),
                    textcoords="offset points",
                    color=colour,
                )
    axes.set(title=title, xlabel="nodes", ylabel=unit, xscale="log", yscale="log")
    axes.set_xticks([1, 8, 32], ["1", "8", "32"])
    axes.minorticks_off()
    axes.set_xlim(0.85, 55)
    axes.grid(alpha=0.3)


def main() -> None:
    raw, out = Path(sys.argv[1]), sys.argv[2]
    kept = json.loads(raw.read_text())
    rows = kept["rows"]
    figure, panels = pyplot.subplots(2, 2, figsize=(11, 9))
    draw(panels[0][0], medians(rows, "plan", ("cpu",), True), "15 resources: controller CPU a node", "ms", 1000)
    draw(panels[0][1], medians(rows, "facts", ("cpu",), True), "20 facts: controller CPU a node", "ms", 1000)
    draw(panels[1][0], medians(rows, "plan", ("wall",), False), "15 resources: wall time of the whole run", "s", 1)
    draw(panels[1][1], medians(rows, "plan", ("sent", "received"), True), "15 resources: bytes a node, both ways", "KB", 0.001)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, frameon=False, fontsize=9)
    where = kept["conditions"]
    title = f"Nothing to do: {where['cores']} cores play controller and nodes (STAND-IN: lab)"
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    pyplot.rcParams["svg.hashsalt"] = "peers"
    figure.savefig(f"{out}.svg", metadata={"Date": None})
    figure.savefig(f"{out}.png", dpi=100)


main()
