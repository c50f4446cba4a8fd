"""The results as a picture, for an interpreter with matplotlib: python plot.py TRAINING.JSON OUT writes OUT.svg and OUT.png."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = {"plain": "#95a5a6", "trl": "#e08e0b", "ours": "#1e8449"}
LABELS = {"plain": "plain loop", "trl": "TRL, its defaults", "ours": "ours"}


def medians(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], float]:
    """(model, method, loop) -> tokens/s at the smallest batch that all loops have, the median of its repeats."""
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        if row["program"] == "steps" and row.get("tokens_per_s") and not row["packed"]:
            found[row["model"], row["method"], row["loop"]].append((row["batch"], row["tokens_per_s"]))
    least = {key: min(batch for batch, _ in values) for key, values in found.items()}
    return {key: statistics.median(rate for batch, rate in values if batch == least[key]) for key, values in found.items()}


def rates(axes: Any, found: dict[tuple[str, str, str], float]) -> None:
    """Bars of tokens/s by case, the multiple of the plain loop above each."""
    cases = list(dict.fromkeys((model, method) for model, method, _ in found))
    for number, (loop, colour) in enumerate(COLOURS.items()):
        for at, case in enumerate(cases):
            rate = found.get((*case, loop))
            if rate is None:
                continue
            axes.bar(at + (number - 1) * 0.27, rate, 0.25, color=colour, label=LABELS[loop] if at == 0 else None)
            plain = found.get((*case, "plain"))
            text = f"{rate:,.0f}" + (f"\n{rate / plain:.2f}x" if plain and loop != "plain" else "")
            axes.annotate(text, (at + (number - 1) * 0.27, rate), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(cases)), [f"{model}, {method}" for model, method in cases])
    axes.set(ylabel="tokens/s", title="One GPU, rows of 4096 tokens")
    axes.margins(y=0.18)
    axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.3)


def profiles(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Stacked bars: what a step of ours is made of."""
    found = {
        f"{row['model']}, {row['method']}": row["profile"]["groups_ms"] for row in rows if isinstance(row.get("profile"), dict)
    }
    groups = list(dict.fromkeys(name for groups in found.values() for name in groups))
    colours = pyplot.get_cmap("tab10")
    for at, times in enumerate(found.values()):
        whole, below = sum(times.values()), 0.0
        for number, name in enumerate(groups):
            share = 100 * times.get(name, 0.0) / whole
            axes.barh(at, share, 0.6, left=below, color=colours(number), label=name if at == 0 else None)
            if share > 4:
                axes.annotate(f"{times[name]:.0f}", (below + share / 2, at), ha="center", va="center", fontsize=8, color="white")
            below += share
    axes.set_yticks(range(len(found)), found.keys())
    axes.set(xlabel="share of a step of ours, %; ms in the bars", title="What is left")
    axes.legend(frameon=False, fontsize=8, ncol=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def main() -> None:
    kept, out = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]
    pyplot.rcParams["svg.hashsalt"] = "training"
    shown = any(isinstance(row.get("profile"), dict) for row in kept["rows"])
    figure, panels = pyplot.subplots(2 if shown else 1, 1, figsize=(10, 9 if shown else 5), squeeze=False)
    rates(panels[0][0], medians(kept["rows"]))
    if shown:
        profiles(panels[1][0], kept["rows"])
    if kept["stand_in"]:
        figure.suptitle(f"STAND-IN: {kept['stand_in']}", fontsize=11)
    figure.tight_layout()
    figure.savefig(f"{out}.svg", metadata={"Date": None})
    figure.savefig(f"{out}.png", dpi=100)


if __name__ == "__main__":
    main()
