"""What has to be known before a model is loaded: the run, its model, its data, its values; refused with all that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer import examples, memory, model
from trainer.call import Call
from trainer.device import Device
from trainer.errors import Problem, Refused
from trainer.memory import Estimate, Load
from trainer.resolve import SPLIT, Resolved, dataset_path, resolve
from trainer.spec import RunConfig
from trainer.yaml_text import Document


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that is decided. `fits` is None where there is no card to hold the estimate against."""

    run: RunConfig
    document: Document
    plan: model.Plan
    data: examples.Data | None
    resolved: Resolved
    load: Load
    estimate: Estimate
    card: int | None
    fits: bool | None
    advice: tuple[str, ...]


def width(run: RunConfig, device: Device) -> str:
    """The type that the weights are loaded in: bf16 where it is used, else fp32 (fp16 keeps fp32 weights beside)."""
    bf16 = run.bf16 if run.bf16 is not None else (device.kind == "cuda" and device.bf16 and not run.fp16)
    return "bfloat16" if bf16 else "float32"


def seed(run: RunConfig) -> int:
    """The seed of everything that is drawn; 42 is Transformers' default."""
    return 42 if run.seed is None else run.seed


def look_at_data(call: Call, run: RunConfig) -> examples.Data:
    """Read the data once. Raises DataRefused."""
    share = run.validation_split if run.validation_split is not None else 0.0 if run.validation_dataset else SPLIT
    validation = dataset_path(run.validation_dataset, call.data_root) if run.validation_dataset else None
    return examples.look(dataset_path(run.dataset, call.data_root), validation, run.objective.type, share, seed(run))


def prepare(
    call: Call,
    run: RunConfig,
    document: Document,
    device: Device,
    world: int,
    kind: type[Any],
    data: Callable[[], examples.Data] | None,
) -> Prepared:
    """Decide everything. Raises Refused with the problems of model, data and values together."""
    problems: list[Problem] = []

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Refused as error:
            problems.extend(error.problems)
            return None

    plan = attempt(lambda: model.plan(run))
    found = attempt(data) if data else None
    resolved = attempt(lambda: resolve(run, document, kind, device, world, False))
    if problems:
        raise Refused(
            problems, "data" if all(p.where not in ("model",) for p in problems) and found is None and plan and resolved else ""
        )
    load, needed = _load(run, device, world)
    card = _card(call, device)
    if run.gradient_checkpointing is None and card is not None and not memory.estimate(plan.shape, load).fits(card):
        load, needed = _load(run.model_copy(update={"gradient_checkpointing": True}), device, world)
    if needed:
        resolved = resolve(run, document, kind, device, world, True)
    estimate = memory.estimate(plan.shape, load)
    fits = None if card is None else estimate.fits(card)
    advice = memory.advice(plan.shape, load, card) if card is not None and not fits else []
    return Prepared(run, document, plan, found, resolved, load, estimate, card, fits, tuple(advice))


def _card(call: Call, device: Device) -> int | None:
    if call.card_gib is not None:
        return int(call.card_gib * memory.GIB)
    return device.memory if device.kind == "cuda" else None


def _load(run: RunConfig, device: Device, world: int) -> tuple[Load, bool]:
    checkpointing = bool(run.gradient_checkpointing)
    load = Load(
        engine=run.engine_spec,
        world=world,
        batch=run.per_device_train_batch_size,
        length=run.max_length,
        width=2 if width(run, device) == "bfloat16" or run.fp16 else 4,
        lora=run.method.type == "lora",
        checkpointing=checkpointing,
        preferences=run.objective.type == "dpo",
    )
    return load, checkpointing


def refuse_what_cannot_fit(found: Prepared) -> str:
    """Raises Refused where weights, gradients and optimizer alone are more than the card; a warning where the estimate is."""
    if found.fits is not False:
        return ""
    estimate, card = found.estimate, found.card or 0
    states = estimate.weights + estimate.gradients + estimate.optimizer + estimate.other
    sizes = (
        f"{estimate.total / memory.GIB:.1f} GiB a GPU, {states / memory.GIB:.1f} without activations, of {card / memory.GIB:.1f}"
    )
    what = f"does not fit: {sizes}; try {', or '.join(found.advice)}"
    if states > card:
        raise Refused(Problem("memory", what), "out-of-memory")
    return f"may not fit: {sizes}; if it runs out of memory try {', or '.join(found.advice)}"
