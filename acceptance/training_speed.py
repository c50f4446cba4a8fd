"""Ours trains at least as many times faster than the plain loop and than TRL's defaults as was promised, and computes the same."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.claims import ROOT, Claims, say
from benchmarks.baselines.plain import STATED, TOLERANCE
from benchmarks.training import report
from benchmarks.training.__main__ import sources
from benchmarks.training.cases import LOOPS, MEASURED, OURS, PLAIN, TARGETS, TRL, holds, rates
from benchmarks.training.whole import EVERY

RESULTS = ROOT / "benchmarks" / "results"
MOST_APART = 0.05  # the rates of one loop, each the median of its steps
STALL, MOST_SLOWER = 0.05, 5  # of the time of the steps between two checkpoints; what pinning alone would take is many steps
WORSE, PACKED_OFF = 1.1, 1e-2  # gradient error beside the plain loop's; loss of a packed sequence in bf16


def whole(claims: Claims, kept: Mapping[str, Any]) -> None:
    """Measured on a GPU, every loop, with the frozen plain loop that is here."""
    claims.check("measured on a GPU", not kept["stand_in"], kept["stand_in"] or f"{len(kept['rows'])} measurements")
    frozen = {call["model"]: call["frozen"] for call in kept["calls"]}
    claims.check("the plain loop is the frozen one", set(frozen.values()) == {sources()["frozen"]}, frozen)
    ours = sources()["ours"]
    measured = [(call["model"], call["date"]) for call in kept["calls"] if call["ours"] == ours]
    say(f"measured of ours as it is now: {measured or 'nothing'}; of earlier ones: {len(kept['calls']) - len(measured)} calls")
    failed = [f"{row['program']} {row['loop']}: {row['error']}" for row in kept["rows"] if "error" in row]
    claims.check("no measurement failed", not failed, failed or "none")
    for model, method in TARGETS:
        times = {loop: len(rates(kept["rows"], model, method, loop)) for loop in LOOPS}
        claims.check(f"{model} {method}: every loop was timed", all(times.values()), times)
    timed = [row for row in kept["rows"] if row["program"] == "steps" and "step_ms" in row]
    claims.check(f"{MEASURED} steps each", all(len(row["step_ms"]) == MEASURED for row in timed), f"{len(timed)} measurements")
    repeats = [rates(kept["rows"], *case, loop) for case in TARGETS for loop in LOOPS]
    worst = max((max(found) / min(found) - 1 for found in repeats if found), default=1.0)
    within = max((report.spread(row) for row in timed if not row["packed"]), default=1.0)
    evidence = f"{worst:.1%}; between the quartiles of one's steps {within:.1%} at most"
    claims.check(f"repeats agree within {MOST_APART:.0%}", worst <= MOST_APART and min(map(len, repeats)) > 1, evidence)
    page = (RESULTS / "training.md").read_text(encoding="utf-8")
    claims.check("the page is what the raw results come to", page == report.markdown(kept), f"{len(page)} characters")
    claims.check("with its picture", (RESULTS / "training.svg").exists(), "training.svg")


def speed(claims: Claims, rows: Sequence[Mapping[str, Any]]) -> None:
    """The ratios, each only where the plain loop landed where it was stated."""
    for (model, method), (least, aim, over_trl) in TARGETS.items():
        plain, ours, trl = (rates(rows, model, method, loop) for loop in (PLAIN, OURS, TRL))
        if not (plain and ours and trl):
            claims.check(f"{model} {method}: {least}x the plain loop", False, "not measured")
            continue
        base, stated = statistics.median(plain), STATED[model, method][1]
        evidence = f"{base:,.0f} tokens/s, stated {stated:,}: {base / stated - 1:+.1%}"
        claims.check(f"{model} {method}: the plain loop lands within {TOLERANCE:.0%}", holds(model, method, base), evidence)
        times = statistics.median(ours) / base
        reached = "the aim as well" if times >= aim else f"short of the aim of {aim}x"
        claims.check(f"{model} {method}: at least {least}x the plain loop", times >= least, f"{times:.3f}x, {reached}")
        beside = statistics.median(ours) / statistics.median(trl)
        claims.check(f"{model} {method}: at least {over_trl}x TRL's defaults", beside >= over_trl, f"{beside:.2f}x")


def same(claims: Claims, rows: Sequence[Mapping[str, Any]]) -> None:
    """Against fp32, packed, and what is left."""
    checks = [row for row in rows if row["program"] == "exact" and "exact" in row]
    claims.check("losses and gradients were held against fp32", bool(checks), f"{len(checks)} calls")
    for row in checks:
        for method in ("lora", "full"):
            plain, ours = (row["exact"][f"{method} {loop}"]["gradient_error"] for loop in (PLAIN, OURS))
            evidence = f"{ours:.1e}, plain loop {plain:.1e}"
            claims.check(f"call for {row['model']}: {method} is as near to fp32 as the plain loop", ours <= WORSE * plain, evidence)
        packed = row["packed"]
        claims.check("a packed neighbour changes nothing", packed["changed_by_neighbour"] == 0, packed)
        claims.check(
            "packed sequences have the loss of single ones", packed["largest_error"] <= PACKED_OFF, packed["largest_error"]
        )
    profiled = {(row["model"], row["method"]) for row in rows if isinstance(row.get("profile"), dict)}
    claims.check("what is left of a step is known in each case", profiled >= set(TARGETS), sorted(profiled))
    if told := report.expectations(rows):
        what, expected, measured = told[0]
        say(f"the expectation that held least: {what}: {expected:,.0f} expected, {measured:,.1f} measured")


def stalls(claims: Claims, run: Mapping[str, Any]) -> None:
    """Full training, a checkpoint every hundred steps."""
    share = max(run["stalls"]) / (EVERY * run["step_seconds"])
    claims.check("the run of full training ended well", (run["exit"], run["status"]) == (0, "succeeded"), run["status"])
    evidence = f"{run['stalls']} s, {share:.1%}; sealed after {run['sealed']} s, steps meanwhile slower by {run['slowed'][0]:.1f} s"
    claims.check(f"a checkpoint holds training up for less than {STALL:.0%}", len(run["stalls"]) > 1 and share < STALL, evidence)
    second = run["first_steps"][1] / run["step_seconds"]
    claims.check("nor does taking memory for it", second < MOST_SLOWER, f"the second step took {second:.1f} times the usual")


def main() -> int:
    claims = Claims("training speed", "")
    say("benchmarks/results/training.json (python -m benchmarks.training)")
    raw = RESULTS / "training.json"
    claims.check("it was measured", raw.exists(), raw.name if raw.exists() else "benchmarks/results/training.json is not there")
    if raw.exists():
        kept = json.loads(raw.read_text())
        whole(claims, kept)
        speed(claims, kept["rows"])
        same(claims, kept["rows"])
    say("benchmarks/results/training_run.json (python -m benchmarks.training.whole)")
    stalls(claims, json.loads((RESULTS / "training_run.json").read_text())["full"])
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
