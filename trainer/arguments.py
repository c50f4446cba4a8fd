"""TRL's config classes with what the trainer sets itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trl import DPOConfig, SFTConfig

from trainer.call import Call
from trainer.device import Device
from trainer.engines import Engine
from trainer.resolve import Resolved


@dataclass
class SftArguments(SFTConfig):  # type: ignore[misc]
    """SFTConfig, and whether the engine brings the model to the device."""

    placed_by_engine: bool = field(default=False)

    @property
    def place_model_on_device(self) -> bool | None:
        return False if self.placed_by_engine else None


@dataclass
class DpoArguments(DPOConfig):  # type: ignore[misc]
    """DPOConfig, and whether the engine brings the model to the device."""

    placed_by_engine: bool = field(default=False)

    @property
    def place_model_on_device(self) -> bool | None:
        return False if self.placed_by_engine else None


def kind(objective: str) -> type[Any]:
    """The library's config class of an objective."""
    return SftArguments if objective == "sft" else DpoArguments


def arguments(call: Call, resolved: Resolved, engine: Engine, device: Device, objective: str) -> Any:
    """The library's config of a run."""
    given = dict(resolved.arguments)
    given["activation_checkpointing"] = given.pop("gradient_checkpointing")  # Transformers 5.24's name for it
    given |= {
        "gradient_checkpointing": given["activation_checkpointing"],  # TRL 1.16 reads the old one
        "output_dir": str(call.checkpoints),
        "save_strategy": "steps",
        "metric_for_best_model": "loss",
        "greater_is_better": False,
        "report_to": [],
        "disable_tqdm": True,
        "logging_nan_inf_filter": False,  # it replaces a loss that is no number by the mean of those before
        "restore_callback_states_from_checkpoint": False,
        "use_cpu": device.kind == "cpu",
        "placed_by_engine": engine.placed,
    }
    given |= engine.prepare(resolved)
    return kind(objective)(**given)
