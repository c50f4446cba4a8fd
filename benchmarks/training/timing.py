"""Steps timed from one synchronisation to the next, so that nothing between them goes uncounted, data and logging included."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any


class Watch:
    """Notes the time at the end of each step, once the device has done all of it.

    `lap()` is called after every step, the warm ones too. Memory is the peak that torch allocated over all steps in GiB, 0 on a
    CPU.
    """

    def __init__(self, device: str) -> None:
        import torch

        self._cuda = torch.cuda if device == "cuda" else None
        self._ends: list[float] = []
        self.lap()

    def lap(self) -> None:
        if self._cuda:
            self._cuda.synchronize()
        self._ends.append(time.perf_counter())

    def figures(self, warm: int, tokens: int, flops: int, free: int = 0) -> dict[str, Any]:
        """Of the steps after the warm ones: their times in ms, the median's tokens/s and useful TFLOP/s, and peak GiB.

        The last lap is one of `free` steps that nobody waited between, as in real training: their tokens/s.
        """
        took = [1e3 * (end - start) for start, end in itertools.pairwise(self._ends)]
        counted = took[warm : len(took) - bool(free)]
        median = statistics.median(counted)
        peak = self._cuda.max_memory_allocated() / 2**30 if self._cuda else 0.0
        return {
            "step_ms": [round(ms, 2) for ms in counted],
            "warm_ms": [round(ms, 2) for ms in took[:warm]],
            "median_ms": round(median, 2),
            "tokens_per_s": round(1e3 * tokens / median, 1),
            "useful_tflops": round(1e-9 * tokens * flops / median, 2),
            "free_tokens_per_s": round(1e3 * tokens * free / took[-1], 1) if free else None,
            "peak_gib": round(peak, 2),
        }


def loop(step: Callable[[], Any], device: str, steps: tuple[int, int], free: int) -> tuple[Watch, list[float]]:
    """Take the warm and the measured steps, then `free` ones; the losses of all, read once all times are noted."""
    watch, losses = Watch(device), []
    for _ in range(sum(steps)):
        losses.append(step())
        watch.lap()
    losses += [step() for _ in range(free)]
    watch.lap()
    return watch, [float(loss) for loss in losses]
