"""What one rank measures of its steps. Tensors are read when something is logged: reading waits for the GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.flops import Work, ceiling


@dataclass(slots=True)
class Meters:
    """`work`: what a token costs; `card`: the device's name; `length`: tokens a sequence, for the attention's share."""

    work: Work
    card: str
    length: int
    steps: int = 0
    samples: int = 0
    wait: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    paused: float = 0.0
    _tokens: list[Any] = field(default_factory=list)
    _losses: list[Any] = field(default_factory=list)
    _bad: list[Any] = field(default_factory=list)

    def waited(self, seconds: float, batches: Sequence[Any]) -> None:
        """A step's batches came after so many seconds."""
        self.wait += seconds
        for batch in batches:
            ids = batch["input_ids"]
            self.samples += int(ids.shape[0])
            self._tokens.append(batch["attention_mask"].sum() if "attention_mask" in batch else ids.numel())

    def lost(self, loss: Any) -> None:
        """The loss of one micro batch of this rank, a tensor."""
        self._losses.append(loss)
        self._bad.append(loss.isfinite().logical_not())

    def stepped(self) -> None:
        """An optimizer step is done."""
        self.steps += 1
        self._losses.clear()

    @property
    def step_loss(self) -> float:
        """The loss of the step at work, on this rank. Waits for the device."""
        return float(sum(float(loss) for loss in self._losses))

    def bad(self) -> bool:
        """Whether a loss since the last call was no finite number. Waits for the device."""
        found = any(bool(one) for one in self._bad)
        self._bad.clear()
        return found

    def away(self, seconds: float) -> None:
        """Time that was no training: a checkpoint, an evaluation."""
        self.paused += seconds

    def read(self) -> dict[str, float]:
        """Rates since the last call: of this rank, without the time that it was away."""
        now = time.perf_counter()
        seconds = max(now - self.began - self.paused, 1e-9)
        tokens = float(sum(float(count) for count in self._tokens))
        rate = tokens / seconds
        useful = rate * self.work.a_token(self.length) / 1e12
        found = {
            "tokens_per_second": rate,
            "samples_per_second": self.samples / seconds,
            "step_seconds": seconds / max(self.steps, 1),
            "data_wait_seconds": self.wait / max(self.steps, 1),
            "useful_tflops": useful,
        }
        if (most := ceiling(self.card)) is not None:
            found["ceiling_share"] = useful / most
        self.steps = self.samples = 0
        self.wait = self.paused = 0.0
        self._tokens.clear()
        self.began = now
        return {name: value for name, value in found.items() if math.isfinite(value)}
