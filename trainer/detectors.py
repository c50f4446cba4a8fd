"""What looks at losses and says when something is wrong. Values in, findings out; the run file chooses what is done."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from trainer.spec import Detector

WINDOW = 20  # losses that a spike is judged against
SPIKE = 6.0  # robust standard deviations above their median, and half of the median at least
STALL = 200  # losses within which the newer half has to be lower than the older one
LOWER = 0.002  # by this share at least
DEVIATION = 1.4826  # median absolute deviation -> standard deviation of a normal distribution


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a detector saw at a step."""

    detector: Detector
    step: int
    what: str


@dataclass(slots=True)
class Watch:
    """Sees one loss after another; the same on all ranks when they are given the same losses."""

    recent: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    long: deque[float] = field(default_factory=lambda: deque(maxlen=STALL))

    def see(self, step: int, loss: float) -> Finding | None:
        """What is wrong with this loss, given those before. A spike is not learnt from."""
        if not math.isfinite(loss):
            return Finding("nan", step, f"the loss is {loss}")
        if found := self._spike(step, loss):
            return found
        self.recent.append(loss)
        self.long.append(loss)
        return self._stalled(step)

    def _spike(self, step: int, loss: float) -> Finding | None:
        if len(self.recent) < WINDOW:
            return None
        middle = median(self.recent)
        spread = DEVIATION * median(abs(value - middle) for value in self.recent)
        if loss <= middle + max(SPIKE * spread, abs(middle) / 2):
            return None
        return Finding("loss-spike", step, f"the loss is {loss:.4g}, the {WINDOW} before had a median of {middle:.4g}")

    def _stalled(self, step: int) -> Finding | None:
        if len(self.long) < STALL:
            return None
        values = list(self.long)
        older, newer = median(values[: STALL // 2]), median(values[STALL // 2 :])
        if newer < older - LOWER * abs(older):
            return None
        self.long.clear()  # said once for each stretch
        return Finding("stalled-loss", step, f"no lower over {STALL} losses: median {newer:.4g} after {older:.4g}")
