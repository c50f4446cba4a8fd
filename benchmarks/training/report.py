"""The page from the raw results of the calls, nothing measured: `python -m benchmarks.training.report DIR/training-*.json`.

Writes benchmarks/results/training.json (all calls), training.md, and with matplotlib training.svg and .png.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines.plain import STATED, TOLERANCE
from benchmarks.training.cases import LOOPS, OURS, PLAIN, TARGETS, TRL, holds, rates

RESULTS = Path(__file__).resolve().parent.parent / "results"
NAMES = {PLAIN: "plain loop", TRL: "TRL, its defaults", OURS: "ours"}
# What was expected of ours before this was measured, from work by hand on such a card: tokens/s, and ms of a step by group.
EXPECTED_RATE = {("1.5b", "lora"): 56_806, ("7.6b", "lora"): 16_780, ("1.5b", "full"): 50_962}
EXPECTED_MS = {
    ("1.5b", "lora"): {
        "GEMM": 136,
        "rank-16 GEMM": 36,
        "attention": 43,
        "elementwise and norms": 46,
        "cross-entropy": 4,
        "idle": 10,
    },
    ("7.6b", "lora"): {"GEMM": 367, "attention": 55, "elementwise and norms": 50},
}
Rows = Sequence[Mapping[str, Any]]


def together(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All calls in one value; rows keep the model that they are of."""
    return {
        "stand_in": next((call["stand_in"] for call in calls if call["stand_in"]), ""),
        "calls": [{key: value for key, value in call.items() if key != "rows"} for call in calls],
        "rows": [row for call in calls for row in call["rows"]],
    }


def as_json(kept: Mapping[str, Any]) -> str:
    """One row a line, so that two results can be compared."""
    rest = json.dumps({key: value for key, value in kept.items() if key != "rows"}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in kept["rows"])
    return f'{rest[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n'


def cases(rows: Rows) -> list[tuple[str, str]]:
    """(model, method) of every loop that was timed, in the order in which they were."""
    return list(dict.fromkeys((row["model"], row["method"]) for row in rows if row["program"] == "steps"))


def ratio(rows: Rows, model: str, method: str, over: str) -> float | None:
    """Ours over another loop, medians of the repeats; None where one is missing."""
    ours, other = rates(rows, model, method, OURS), rates(rows, model, method, over)
    return statistics.median(ours) / statistics.median(other) if ours and other else None


def markdown(kept: Mapping[str, Any]) -> str:
    """The page."""
    rows = kept["rows"]
    pieces = [_conditions(kept), _rates(rows), _beyond(rows), _left(rows), _expected(rows), _exact(rows), _missing(kept)]
    return "\n".join(line for piece in pieces for line in piece) + "\n"


def _conditions(kept: Mapping[str, Any]) -> Iterator[str]:
    yield "# Training on one GPU\n"
    if kept["stand_in"]:
        yield f"STAND-IN: {kept['stand_in']}.\n"
    yield "`python -m benchmarks.training --model 1.5b`, then `--model 7.6b`; a process for each measurement, loops in turn.\n"
    for row in kept["rows"]:
        if row["program"] != "ceilings" or "error" in row:
            continue
        named = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        yield f"- {row.get('device_name', row['device'])}, call for {row['model']}: {named}."
        if "matmul_sustained_tflops" in row:
            attention = "; ".join(f"{name} {forward:.0f} / {back:.0f}" for name, (forward, back) in row["attention_tflops"].items())
            yield (
                f"  Its ceilings then: bf16 matmul {row['matmul_burst_tflops']:.0f} TFLOP/s in a burst, "
                f"**{row['matmul_sustained_tflops']:.0f} sustained**; copy {row['copy_tb_per_s']:.2f} TB/s; "
                f"attention forward / backward by SDPA's kernel: {attention}."
            )
    yield from (
        f"- Measured on {call['date']}: plain loop {call['frozen']}, ours {call['ours']} (digests)." for call in kept["calls"]
    )
    yield "- Random weights, rows of 4096 random tokens, fresh in each step; medians of 7 steps after 3, from synchronisation to"
    yield "  synchronisation. Useful work: LoRA 4 FLOP a weight and token and twice the causal attention, full 6 and three times.\n"


def _rates(rows: Rows) -> Iterator[str]:
    yield (
        "| model, method, batch | loop | tokens/s (all repeats) | useful TFLOP/s | of the matmul ceiling | peak GiB | spread "
        "| x plain | x TRL | tokens/s without waiting |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for model, method in cases(rows):
        for loop in LOOPS:
            found = rates(rows, model, method, loop)
            if not found:
                yield f"| {model} {method} | {NAMES[loop]} | not measured | | | | | | | |"
                continue
            row = next(row for row in rows if row.get("tokens_per_s") == found[0] and row["loop"] == loop)
            every = ", ".join(f"{rate:,.0f}" for rate in found)
            rate = statistics.median(found)
            tflops = row["useful_tflops"] * rate / found[0]
            over = [times(rates(rows, model, method, loop), rates(rows, model, method, other)) for other in (PLAIN, TRL)]
            yield (
                f"| {model} {method} b{row['batch']} | {NAMES[loop]} | {rate:,.0f} ({every}) | {tflops:.0f} "
                f"| {_share(rows, model, tflops)} | {row['peak_gib']:.0f} | {spread(row):.1%} | {over[0]} | {over[1]} "
                f"| {_free(rows, model, method, loop)} |"
            )
    yield "\n![tokens a second](training.svg)\n"
    yield from _verdicts(rows)


def _free(rows: Rows, model: str, method: str, loop: str) -> str:
    """The median of the repeats whose last steps nobody waited between."""
    found = [
        row["free_tokens_per_s"]
        for row in rows
        if row.get("free_tokens_per_s") and row["tokens_per_s"] in rates(rows, model, method, loop) and row["loop"] == loop
    ]
    return f"{statistics.median(found):,.0f}" if found else ""


def spread(row: Mapping[str, Any]) -> float:
    """Between the quartiles of the steps, as a share of the median: one step that something else disturbed does not count."""
    low, middle, high = statistics.quantiles(row["step_ms"], n=4)
    return float((high - low) / middle)


def times(ours: Sequence[float], other: Sequence[float]) -> str:
    return f"{statistics.median(ours) / statistics.median(other):.2f}" if ours and other else ""


def _share(rows: Rows, model: str, tflops: float) -> str:
    ceilings = [row["matmul_sustained_tflops"] for row in rows if row["model"] == model and "matmul_sustained_tflops" in row]
    return f"{tflops / ceilings[0]:.0%}" if ceilings else ""


def _verdicts(rows: Rows) -> Iterator[str]:
    for (model, method), (least, aim, over_trl) in TARGETS.items():
        plain, found, trl = rates(rows, model, method, PLAIN), ratio(rows, model, method, PLAIN), ratio(rows, model, method, TRL)
        if found is None:
            yield f"- {model} {method}: not measured."
            continue
        measured, stated = statistics.median(plain), STATED[model, method][1]
        if not holds(model, method, measured):
            wrong = f"the plain loop made {measured:,.0f} tokens/s, {stated:,.0f} were stated"
            yield f"- {model} {method}: VOID: {wrong} (within {TOLERANCE:.0%})."
            continue
        told = f"at least {least}x: {'held' if found >= least else 'MISSED'}, aim {aim}x: {'reached' if found >= aim else 'missed'}"
        beside = f"{trl:.2f}x TRL's defaults, at least {over_trl}x" if trl else "TRL not measured"
        off = f"Plain {measured / stated - 1:+.1%} off."
        yield f"- {model} {method}: {found:.2f}x the plain loop, {told}; {beside}. {off}"
    yield ""


def _beyond(rows: Rows) -> Iterator[str]:
    special = [row for row in rows if row["program"] == "steps" and row.get("tokens_per_s")]
    special = [
        row for row in special if row["packed"] or row["batch"] != STATED.get((row["model"], row["method"]), (row["batch"],))[0]
    ]
    if special:
        yield "## Beyond that\n"
        yield "| | | tokens/s | useful TFLOP/s | peak GiB |\n|---|---|---|---|---|"
        for row in special:
            what = "sequences of 256 to 2048 tokens, packed" if row["packed"] else "rows of 4096"
            yield (
                f"| {row['model']} {row['method']} b{row['batch']}, {what} | {NAMES[row['loop']]} | {row['tokens_per_s']:,.0f} "
                f"| {row['useful_tflops']:.0f} | {row['peak_gib']:.0f} |"
            )
        yield ""


def _profiles(rows: Rows) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (row["model"], row["method"]): row["profile"] for row in rows if row.get("profile") and isinstance(row["profile"], dict)
    }


def _left(rows: Rows) -> Iterator[str]:
    profiles = _profiles(rows)
    if not profiles:
        return
    yield "## What is left of a step of ours\n"
    yield "ms by group of kernels, from torch's profiler (two steps after those that are timed, and slower than those).\n"
    groups = list(dict.fromkeys(name for profile in profiles.values() for name in profile["groups_ms"]))
    yield f"| | {' | '.join(groups)} | sum |"
    yield "|---" * (len(groups) + 2) + "|"
    for (model, method), profile in profiles.items():
        cells = [f"{profile['groups_ms'].get(name, 0):.1f}" for name in groups]
        yield f"| {model} {method} | {' | '.join(cells)} | {sum(profile['groups_ms'].values()):.0f} |"
    yield ""


def expectations(rows: Rows) -> list[tuple[str, float, float]]:
    """What, expected, measured: rates of ours and groups of its profile, the one furthest off first."""
    found = [
        (f"{model} {method}, tokens/s", float(expected), statistics.median(measured))
        for (model, method), expected in EXPECTED_RATE.items()
        if (measured := rates(rows, model, method, OURS))
    ]
    for case, profile in _profiles(rows).items():
        for group, ms in EXPECTED_MS.get(case, {}).items():
            if group in profile["groups_ms"]:
                found.append((f"{' '.join(case)}, {group}, ms", float(ms), profile["groups_ms"][group]))
    return sorted(found, key=lambda item: -abs(item[2] / item[1] - 1))


def _expected(rows: Rows) -> Iterator[str]:
    if told := expectations(rows):
        yield "## What was expected\n"
        yield "From work by hand on such a card, before this was written. The expectation that held least comes first.\n"
        yield "| | expected | measured | off |\n|---|---|---|---|"
        for what, expected, measured in told:
            yield f"| {what} | {expected:,.0f} | {measured:,.1f} | {measured / expected - 1:+.0%} |"
        yield ""


def _exact(rows: Rows) -> Iterator[str]:
    for row in rows:
        if row["program"] != "exact" or "exact" not in row:
            continue
        yield f"## Against fp32 (a small model, call for {row['model']})\n"
        yield "| | error of the gradient | error of the first loss | largest error of a loss |\n|---|---|---|---|"
        for name, found in row["exact"].items():
            if "gradient_error" in found:
                cells = [found["gradient_error"], found["first_loss_error"], found["largest_loss_error"]]
                yield f"| {name} | {' | '.join(f'{cell:.1e}' for cell in cells)} |"
        packed = row["packed"]
        yield (
            f"\n{packed['sequences']} sequences packed into a row: losses differ from each alone by {packed['largest_error']:.1e} "
            f"at most, and by {packed['changed_by_neighbour']:.1e} when a neighbour has other tokens.\n"
        )


def _missing(kept: Mapping[str, Any]) -> Iterator[str]:
    failed = [f"{row['program']} {row['loop']} {row['model']}: {row['error']}" for row in kept["rows"] if "error" in row]
    without = [f"{one['key']} (repeat {one['repeat']}): {one['why']}" for call in kept["calls"] for one in call["left_out"]]
    if failed or without:
        yield "## Not measured\n"
        yield from (f"- {line}" for line in failed + without)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="+", type=Path, help="training-MODEL.json of each call")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder (default benchmarks/results)")
    asked = parser.parse_args(argv)
    kept = together([json.loads(path.read_text()) for path in asked.calls])
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "training.json").write_text(as_json(kept))
    (asked.out / "training.md").write_text(markdown(kept))
    print(f"{asked.out}/training.md; the plot: python benchmarks/training/plot.py {asked.out}/training.json {asked.out}/training")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
