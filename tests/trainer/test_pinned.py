"""What of TRL, Transformers and Accelerate is private and relied on: it is there, and it is called where we count on it."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

pytestmark = pytest.mark.train

# method of Transformers' Trainer that we override or call -> its parameters
OVERRIDDEN = {
    "create_accelerator_and_postprocess": [],
    "_prepare_for_training": ["max_steps", "train_dataloader", "resume_from_checkpoint"],
    "_run_epoch": [
        "model",
        "epoch",
        "train_dataloader",
        "steps_in_epoch",
        "num_update_steps_per_epoch",
        "trial",
        "ignore_keys_for_eval",
        "start_time",
        "resume_from_checkpoint",
        "epochs_trained",
        "steps_trained_in_current_epoch",
    ],
    "_clip_grad_norm": ["model"],
    "_evaluate": ["trial", "ignore_keys_for_eval", "skip_scheduler"],  # called, not overridden
    "_determine_best_metric": ["metrics", "trial"],
    "_load_from_checkpoint": ["resume_from_checkpoint", "model"],
    "_load_optimizer_and_scheduler": ["checkpoint"],
    "_load_rng_state": ["checkpoint"],
    "_get_output_dir": ["trial"],
    "_save_checkpoint": ["model", "trial"],
    "save_model": ["output_dir", "_internal_call"],
    "_save_optimizer_and_scheduler": ["output_dir"],
    "_save": ["output_dir", "state_dict"],
    "get_batch_samples": ["epoch_iterator", "num_batches", "device"],
    "training_step": ["model", "inputs", "num_items_in_batch"],
}
# where -> what its source has to say for ours to be called, in this order
CALLS = {
    "__init__": ["self.create_accelerator_and_postprocess("],
    "train": ["self._load_from_checkpoint(", "inner_training_loop("],
    "_inner_training_loop": [
        "self._init_training_state(",
        "self._prepare_for_training(",
        "self._initial_global_step = self.state.global_step",
        "self._run_epoch(\n                model=model,",
        "self._finalize_training(",
    ],
    "_prepare_for_training": [
        "self.create_optimizer()",
        "self.accelerator.prepare(self.model, self.optimizer)",
        "self.create_scheduler(",
        "self._load_optimizer_and_scheduler(",
    ],
    "_run_epoch": [
        "self.get_batch_samples(",
        "self._load_rng_state(",
        "self.training_step(",
        "self._clip_grad_norm(",
        "self.callback_handler.on_pre_optimizer_step(",
        "self.optimizer.step()",
        "self.callback_handler.on_step_end(",
        "self._maybe_log_save_evaluate(",
    ],
    "_save_checkpoint": [
        "self._get_output_dir(",
        "self.save_model(",
        "self._save_optimizer_and_scheduler(",
        "self._save_rng_state(",
        "TRAINER_STATE_NAME",
        "rotate_checkpoints(",
    ],
}


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_has_the_parameters_that_we_pass(name: str) -> None:
    from transformers import Trainer

    assert list(inspect.signature(getattr(Trainer, name)).parameters)[1:] == OVERRIDDEN[name]


@pytest.mark.parametrize("name", CALLS)
def test_they_are_called_where_and_in_the_order_that_we_count_on(name: str) -> None:
    from transformers import Trainer

    source = inspect.getsource(getattr(Trainer, name))
    places = [source.find(call) for call in CALLS[name]]
    assert -1 not in places, dict(zip(CALLS[name], places, strict=True))
    if name != "_run_epoch":  # the state of random numbers is loaded in two places there
        assert places == sorted(places)


def test_trl_saves_through_transformers_and_asks_for_a_card_that_we_leave_out() -> None:
    from trl import DPOTrainer, SFTTrainer

    for kind in (SFTTrainer, DPOTrainer):
        source = inspect.getsource(kind._save_checkpoint)
        assert "self.create_model_card(" in source
        assert "super()._save_checkpoint(model, trial)" in source


def test_tokens_depend_on_nothing_that_is_not_in_their_key() -> None:
    from trl import DPOTrainer, SFTTrainer

    from trainer import tokenised

    handed_over = {"args.dataset_num_proc", "self._tokenizer", "self.chat_template"}  # how fast; the key's tokenizer and template
    keyed = {f"args.{name}" for name in tokenised.ARGUMENTS} | {f"self.{name}" for name in tokenised.ATTRIBUTES}
    read: set[str] = set()
    for kind in (SFTTrainer, DPOTrainer):
        assert list(inspect.signature(kind._prepare_dataset).parameters)[1:4] == ["dataset", "processing_class", "args"]
        assert list(inspect.signature(kind._prepare_dataset).parameters)[-1] == "dataset_name"
        assert "self._prepare_dataset(" in inspect.getsource(kind.__init__)
        read |= set(re.findall(r"\b(?:args|self)\.\w+", inspect.getsource(kind._prepare_dataset)))
    assert read == keyed | handed_over


def test_accelerate_prepares_models_by_the_method_that_we_replace() -> None:
    from accelerate import Accelerator

    assert "self.prepare_model(obj" in inspect.getsource(Accelerator._prepare_one)


def test_on_a_cpu_accelerate_still_has_no_fsdp() -> None:
    """The reason for our own: when this fails, look whether theirs can be used."""
    from accelerate.state import AcceleratorState

    source = inspect.getsource(AcceleratorState.__init__)
    multi = source.index("DistributedType.MULTI_GPU")
    assert "MULTI_CPU" not in source[multi : source.index("self.fsdp_plugin = fsdp_plugin")]


class Together:
    """One rank that says what another one would."""

    rank, world = 0, 2

    def gather(self, value: Any) -> list[Any]:
        return [value, value]


class Trainer:
    """What an engine looks at."""

    def __init__(self) -> None:
        import torch

        self.model = self.model_wrapped = torch.nn.Linear(4, 4)


@pytest.mark.parametrize("name", ["ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"])
def test_an_engine_refuses_a_model_that_is_not_what_was_asked_for(name: str) -> None:
    """Plain, unwrapped, whole on every rank: what a library that does nothing without a word leaves behind."""
    from trainer.device import Device
    from trainer.engines import Unproved, engine
    from trainer.spec import RunConfig

    run = RunConfig.model_validate({"model": "/m", "dataset": "d", "engine": name, "method": "full"})
    found = engine(run, Device("cpu", "CPU", 0, True, False), Together())  # type: ignore[arg-type]
    with pytest.raises(Unproved, match=r"was asked for, but .*not trained"):
        found.prove(Trainer())
