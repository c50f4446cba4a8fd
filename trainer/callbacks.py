"""What is done at the borders of steps: stopping together, detectors, telemetry. All of it is agreed first."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from trainer.detectors import Finding, Watch
from trainer.errors import Problem, Stopped
from trainer.meters import Meters
from trainer.spec import RunConfig
from trainer.stop import Stop
from trainer.telemetry import Telemetry
from trainer.together import Together

log = logging.getLogger("trainer")


class StopTogether(TrainerCallback):  # type: ignore[misc]
    """All ranks stop after the same step, once any of them was told to, and save it."""

    def __init__(self, stop: Stop, together: Together) -> None:
        self.stop, self.together = stop, together
        self.reason = ""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Agree; a run that is done anyway is not called preempted."""
        asked = self.stop.asked
        if not self.together.any(bool(asked)) or control.should_training_stop:
            return
        self.reason = next(filter(None, self.together.gather(asked)))
        log.warning("stopping after step %d as %s asks, and saving", state.global_step, self.reason)
        control.should_save = control.should_training_stop = True


class TakeMemory(TrainerCallback):  # type: ignore[misc]
    """Let the engine take what it needs for checkpoints, after the first step that gives it all it has to copy."""

    def __init__(self, take: Callable[[], bool]) -> None:
        self.take = take
        self.taken = False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken = self.taken or self.take()


class Detect(TrainerCallback):  # type: ignore[misc]
    """Detectors, and what the run file says of each. Losses that are logged are the same on all ranks, so decisions are as well."""

    def __init__(self, run: RunConfig, together: Together, meters: Meters) -> None:
        self.run, self.together, self.meters = run, together, meters
        self.watch = Watch()
        self.before = Watch()  # sees each step's loss before the update, where one may be skipped
        self.skips = [name for name in ("nan", "loss-spike") if run.reaction(name) == "skip"]
        self.skipped: list[int] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Leave an update out: without gradients the optimizer does nothing."""
        if not self.skips:
            return
        found = self.before.see(state.global_step + 1, self.together.mean(self.meters.step_loss))
        if found is None or found.detector not in self.skips:
            return
        log.warning("step %d is skipped: %s", found.step, found.what)
        self.skipped.append(found.step)
        for parameter in model.parameters():
            parameter.grad = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A loss that is no number is looked for where one waits for the GPU anyway."""
        looks = control.should_log or control.should_save or control.should_training_stop or args.device.type == "cpu"
        if looks and self.together.any(self.meters.bad()):
            self._act(Finding("nan", state.global_step, "the loss is not a finite number"))
        self.meters.stepped()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Judge a logged loss."""
        if logs and "loss" in logs and (found := self.watch.see(state.global_step, float(logs["loss"]))):
            self._act(found)

    def _act(self, found: Finding) -> None:
        reaction = self.run.reaction(found.detector)
        if reaction == "stop":
            raise Stopped(Problem(f"step {found.step}", f"{found.what} (detectors.{found.detector}: stop)"))
        if reaction == "warn":
            log.warning("step %d: %s (%s)", found.step, found.what, found.detector)


class Tell(TrainerCallback):  # type: ignore[misc]
    """Telemetry of this rank, and a line in train.log for each log."""

    def __init__(self, telemetry: Telemetry, meters: Meters) -> None:
        self.telemetry, self.meters = telemetry, meters
        self._evaluating = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.telemetry.beat(state.global_step, "training", force=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.telemetry.beat(state.global_step, "saving" if control.should_save else "training", force=control.should_save)
        if control.should_evaluate:
            self._evaluating = time.perf_counter()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._evaluating:
            self.meters.away(time.perf_counter() - self._evaluating)
            self._evaluating = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Rates are of the steps since the last log of a loss."""
        import torch

        values = {name: float(value) for name, value in (logs or {}).items() if isinstance(value, int | float)}
        if "loss" in values:
            values |= self.meters.read()
            if torch.cuda.is_available():
                values["gpu_memory_bytes"] = float(torch.cuda.max_memory_allocated())
        self.telemetry.logged(state.global_step, values)
        if state.is_world_process_zero:
            log.info("step %d/%d  %s", state.global_step, state.max_steps, "  ".join(f"{k} {v:.6g}" for k, v in values.items()))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.telemetry.beat(state.global_step, "ending", force=True)
