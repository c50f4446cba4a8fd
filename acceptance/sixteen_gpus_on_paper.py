"""What 16 GPUs are expected to do, from the measured rates of one: the page says what comes out, and on what it hangs."""

from __future__ import annotations

import json
import sys

from acceptance.claims import Claims, say
from benchmarks.baselines.shapes import SHAPES
from benchmarks.training import scaling
from benchmarks.training.scaling import PAGE, RAW, WAYS, every, sent_bytes, slowest_link

NOT_MEASURED = "STAND-IN: arithmetic instead of 16 GPUs; one GPU was measured"


def main() -> int:
    claims = Claims("16 GPUs on paper", NOT_MEASURED)
    say("benchmarks/results/training.json, docs/scaling.md")
    there = RAW.exists()
    claims.check("rates of one GPU were measured", there, RAW.name if there else "benchmarks/results/training.json is not there")
    kept = json.loads(RAW.read_text()) if there else None
    claims.check("the page is what these rates come to", PAGE.read_text(encoding="utf-8") == scaling.page(kept), PAGE.name)
    if kept is None:
        return claims.end()
    found = every(kept["rows"])
    claims.check("every way is there for every measured case", {one.way for one in found} == set(WAYS), f"{len(found)} rows")
    for one in found:
        sending = f"{one.sent_mb:,.0f} MB a step, {one.sending_ms:.0f} ms beside {one.step_ms:.0f}"
        words = f"{sending}: {one.none_hidden:.0%} to {one.all_hidden:.0%}"
        if one.way.method == "lora":
            held = one.none_hidden >= 0.9
            claims.check(f"{one.case}, {one.way.name}: at least 90% even where nothing is hidden", held, words)
        else:
            held = 0 < one.none_hidden <= one.all_hidden <= 1
            claims.check(f"{one.case}, {one.way.name}: between the two bounds", held, words)
    two, three = (next(way for way in WAYS if way.name.endswith(name)) for name in ("zero2", "zero3"))
    shape = SHAPES["1.5b"]
    more = sent_bytes(shape, three) / sent_bytes(shape, two)
    claims.check("ZeRO-3 sends half as much again as ZeRO-2", abs(more - 1.5) < 1e-9, f"x{more:.2f}")
    hardest = max(found, key=lambda one: one.needed_gb_s)
    told = f"{hardest.case}, {hardest.way.name} needs {hardest.needed_gb_s:.1f} GB/s, assumed are {slowest_link():.1f}"
    claims.check("the assumption is named with its size", f"{hardest.needed_gb_s:.1f}" in PAGE.read_text(encoding="utf-8"), told)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
