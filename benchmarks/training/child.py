"""One measurement in its own process, so that memory and compiled code of another are not in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.baselines import plain
from benchmarks.baselines.shapes import SHAPES
from benchmarks.training import ceilings, timing
from benchmarks.training.cases import FREE, PLAIN, Measurement


def answer(wanted: Measurement, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run what is wanted; its figures. `keep` gets them before what may still fail."""
    if wanted.program == "ceilings":
        return ceilings.measure(wanted.model, wanted.device, wanted.length)
    if wanted.program == "exact":
        from benchmarks.training import exact

        return exact.measure(wanted.device)
    if wanted.loop == PLAIN:
        return plain_steps(wanted)
    from benchmarks.training import through_trl

    return through_trl.measure(wanted, keep)


def plain_steps(wanted: Measurement) -> dict[str, Any]:
    """The frozen loop, timed."""
    shape = SHAPES[wanted.model]
    step = plain.step(shape, wanted.method, wanted.batch, wanted.length, wanted.device)
    watch, losses = timing.loop(step, wanted.device, wanted.steps, FREE)
    tokens = wanted.batch * wanted.length
    return {**watch.figures(wanted.steps[0], tokens, shape.useful_flops(wanted.method, wanted.length), FREE), "losses": losses}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    asked["steps"] = tuple(asked["steps"])

    def kept(found: dict[str, Any]) -> None:
        Path(sys.argv[2]).write_text(json.dumps(found))

    kept(answer(Measurement(**asked), kept))
