"""TRL's trainers with what they do not give: an engine that is proved, sealed checkpoints, agreed stops, telemetry.

Private methods of Transformers' Trainer that are overridden here are pinned by tests/trainer/test_pinned.py: they exist, with these
parameters, and are called where we rely on it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from transformers import set_seed
from trl import DPOTrainer

from trainer import speed
from trainer.checkpoints import Checkpoints
from trainer.engines import Engine, Proof
from trainer.loss import FusedLossTrainer
from trainer.meters import Meters
from trainer.tokenised import Tokenised

log = logging.getLogger("trainer")


class Parts:
    """What is ours in a trainer."""

    def __init__(
        self, engine: Engine, checkpoints: Checkpoints, meters: Meters, tokens: Tokenised, world_changed: int | None
    ) -> None:
        self.engine, self.checkpoints, self.meters, self.tokens = engine, checkpoints, meters, tokens
        self.world_changed = world_changed  # the world size of the checkpoint that is resumed, where it is another one
        self.proof: Proof | None = None
        self.speed: dict[str, Any] = {}


class Ours:
    """Mixed in before a trainer of TRL."""

    # what the library's class gives
    model: Any
    args: Any
    state: Any
    optimizer: Any
    lr_scheduler: Any
    accelerator: Any
    control: Any
    _save: Any
    _evaluate: Any
    _determine_best_metric: Any
    _initial_global_step: int

    def __init__(self, parts: Parts, **given: Any) -> None:
        self.parts = parts
        self._aside: Path | None = None
        super().__init__(**given)

    # -- data

    def _prepare_dataset(self, dataset: Any, *given: Any) -> Any:
        """Tokens are made once for each content, and read back at every later start."""
        made = super()._prepare_dataset  # type: ignore[misc]
        return self.parts.tokens.of(self, given, lambda: made(dataset, *given))

    # -- engine

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()  # type: ignore[misc]
        self.parts.engine.attach(self)

    def _prepare_for_training(self, max_steps: Any, train_dataloader: Any, resume_from_checkpoint: Any) -> Any:
        engine = self.parts.engine
        done = speed.apply(self, method=engine.run.method.type, engine=engine.name, device=engine.device.kind)
        self.parts.speed = done.resolved()
        for name, choice in self.parts.speed.items():
            log.info("%s = %s  (%s)", name, choice["value"], choice["why"])
        engine.shard(self.model)
        prepared = super()._prepare_for_training(max_steps, train_dataloader, resume_from_checkpoint)  # type: ignore[misc]
        self.parts.proof = engine.prove(self)
        log.info("proved: %s", self.parts.proof)
        return prepared

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = self.parts.engine.clip(self, model, self.args.max_grad_norm)
        return super()._clip_grad_norm(model) if norm is None else norm  # type: ignore[misc]

    def _run_epoch(self, **given: Any) -> None:
        """Transformers takes one step before it looks whether a resumed run had done them all."""
        if given["epoch"] == given["epochs_trained"] and not given["steps_trained_in_current_epoch"]:
            self._evaluate_what_is_owed(given["trial"])
        if self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
            return
        super()._run_epoch(**given)  # type: ignore[misc]

    # -- resuming

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if type(self.parts.engine).restore is Engine.restore:
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or not self.parts.engine.restore(self, Path(checkpoint)):
            super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
            return
        self.parts.checkpoints.load_scheduler(self.lr_scheduler, Path(checkpoint))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None or self.parts.world_changed is None:
            super()._load_rng_state(checkpoint)  # type: ignore[misc]
            return
        # dropout of other ranks cannot be continued: every rank begins a stream that is its own and repeatable
        set_seed((self.args.seed * 1_000_003 + self.state.global_step * 1_009 + self.args.process_index) % 2**32)

    def _evaluate_what_is_owed(self, trial: Any) -> None:
        """An epoch is evaluated after its last checkpoint: a run that was killed between the two is resumed behind it."""
        step = self.state.global_step
        done = any("eval_loss" in entry and entry["step"] == step for entry in self.state.log_history)
        if step and step == self._initial_global_step and self.args.eval_strategy == "epoch" and not done:
            self._determine_best_metric(metrics=self._evaluate(trial, None), trial=trial)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers that an evaluation draws (its loader does) are none of the training's: a resumed run draws none."""
        import torch

        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            return super().evaluate(*args, **kwargs)  # type: ignore[misc]

    # -- saving

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._aside) if self._aside else str(super()._get_output_dir(trial))  # type: ignore[misc]

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Ours is written at the end, with what the run was (`card.py`)."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        def write(root: Path) -> None:
            self._aside = root
            try:
                super(Ours, self)._save_checkpoint(model, trial)  # type: ignore[misc]
            finally:
                self._aside = None

        self.parts.checkpoints.save(self, write)

    def _finalize_training(self, trial: Any, num_train_samples: Any, start_time: Any) -> Any:
        self.parts.checkpoints.wait()  # a run that is done, or was stopped, has its last checkpoint
        self._evaluate_what_is_owed(trial)
        return super()._finalize_training(trial, num_train_samples, start_time)  # type: ignore[misc]

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """The adapter or the model, whole; beside shards, only what is small."""
        engine, checkpoints = self.parts.engine, self.parts.checkpoints
        shards = engine.name == "fsdp" and engine.run.method.type == "full"
        if _internal_call and shards:
            checkpoints.describe(self, Path(str(output_dir)))
            return
        weights = engine.weights(self)
        if weights is None:
            super().save_model(output_dir, _internal_call)  # type: ignore[misc]
        elif not _internal_call:
            self._save(output_dir, state_dict=weights)
        elif self.args.should_save:
            checkpoints.later("model", weights, lambda copied: self._save(output_dir, state_dict=copied))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        if not self.parts.engine.save(self, Path(output_dir)):
            super()._save_optimizer_and_scheduler(output_dir)  # type: ignore[misc]
        elif self.args.should_save:
            self.parts.checkpoints.save_scheduler(self.lr_scheduler, Path(output_dir))

    # -- measuring

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        found = super().get_batch_samples(*args, **kwargs)  # type: ignore[misc]
        self.parts.meters.waited(time.perf_counter() - began, found[0])
        return found

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().training_step(*args, **kwargs)  # type: ignore[misc]
        self.parts.meters.lost(loss)
        return loss


class SftLoop(Ours, FusedLossTrainer):
    """Supervised fine-tuning."""


class DpoLoop(Ours, DPOTrainer):  # type: ignore[misc]
    """Preference optimisation."""
