"""From what was asked to the values that are used, each with its origin: run.yaml, our default, the library's default, derived.

Pure but for the libraries' config classes, which are handed in; nothing is loaded and no device is asked here.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from trainer import speed
from trainer.device import Device
from trainer.errors import Problem, Refused, nearest
from trainer.spec import RunConfig, batch_problem
from trainer.yaml_text import Document

# fields of the config class that are not the user's: the trainer sets them itself
OURS = frozenset(
    [
        "output_dir", "deepspeed", "fsdp", "fsdp_config", "report_to", "save_strategy", "eval_strategy",
        "metric_for_best_model", "greater_is_better", "load_best_model_at_end", "save_only_model", "resume_from_checkpoint",
        "push_to_hub", "use_cpu", "ddp_backend", "ddp_timeout", "local_rank", "disable_tqdm", "logging_nan_inf_filter",
        "model_init_kwargs", "auto_find_batch_size", "ignore_data_skip", "restore_callback_states_from_checkpoint",
        "per_device_eval_batch_size", "save_on_each_node", "do_train", "do_eval", "do_predict", "run_name",
        "activation_checkpointing", "placed_by_engine",
    ]
)  # fmt: skip
# fields of run.yaml that have the library's own default where they are not said
PASSED = (
    "lr_scheduler_type",
    "warmup_steps",
    "num_train_epochs",
    "max_steps",
    "optim",
    "weight_decay",
    "max_grad_norm",
    "seed",
    "logging_steps",
    "save_steps",
)
LORA_FACTOR = 10  # TRL's advice: adapters take about ten times the learning rate of full fine-tuning
SPLIT = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that is used, and where it comes from."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """`arguments`: what the library's config class is made with. `settings`: everything a person is shown, in order."""

    arguments: dict[str, Any]
    settings: tuple[Setting, ...]

    def value(self, name: str) -> Any:
        """The value of a setting by its name."""
        return next(setting.value for setting in self.settings if setting.name == name)


class _Resolver:
    def __init__(self, config: RunConfig, document: Document, kind: type[Any]) -> None:
        self.config, self.document, self.kind = config, document, kind
        self.library = {field.name: field for field in dataclasses.fields(kind)}
        self.arguments: dict[str, Any] = {}
        self.settings: list[Setting] = []

    def show(self, name: str, value: Any, origin: str) -> Any:
        self.settings.append(Setting(name, value, origin))
        return value

    def use(self, name: str, value: Any, origin: str) -> Any:
        self.arguments[name] = value
        return self.show(name, value, origin)

    def said(self, *path: str) -> str:
        """`run.yaml:LINE` where it stands in the file; empty where it does not."""
        place = self.document.values.get(path)
        return f"{self.document.name}:{place[0]}" if place else ""

    def default(self, name: str) -> Any:
        field = self.library[name]
        return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default

    def library_name(self, name: str) -> str:
        owner = next(base for base in self.kind.__mro__ if name in inspect.get_annotations(base))
        return "TRL's default" if owner.__module__.startswith("trl.") else "Transformers' default"

    def plain(self, name: str) -> None:
        """A field that is passed on where it was said, and else left to the library."""
        if self.said(name) and getattr(self.config, name) is not None:
            self.use(name, getattr(self.config, name), self.said(name))
        else:
            self.show(name, self.default(name), self.library_name(name))


def resolve(config: RunConfig, document: Document, kind: type[Any], device: Device, world: int, checkpointing: bool) -> Resolved:
    """Every value of a run. `kind` is SFTConfig or DPOConfig, `checkpointing` whether it does not fit without.

    Raises Refused with all problems that only the number of GPUs, the device or the library's class could show.
    """
    work = _Resolver(config, document, kind)
    problems = _problems(work, device, world)
    if problems:
        raise Refused(problems)
    for name in ("model", "dataset", "validation_dataset"):
        work.show(name, getattr(config, name), work.said(name) or "our default: split off the dataset")
    _split(work)
    _objective(work)
    _method(work)
    engine = config.engine_spec
    work.show("engine", engine.type, work.said("engine") or f"our default for {config.method.type}")
    for name, value in engine.model_dump(exclude={"type"}).items():
        work.show(f"engine.{name}", value, work.said("engine", name) or "our default")
    _learning_rate(work)
    for name in PASSED:
        work.plain(name)
    _batch(work, world)
    work.use("max_length", config.max_length, work.said("max_length") or "our default (TRL's 1024 cuts chats without a word)")
    _precision(work, device)
    _checkpointing(work, checkpointing)
    _evaluation(work)
    work.show("save_total_limit", config.save_total_limit, work.said("save_total_limit") or "our default: the best is kept besides")
    for name in ("nan", "loss-spike", "stalled-loss"):
        work.show(f"detectors.{name}", config.reaction(name), work.said("detectors", name) or "our default")  # type: ignore[arg-type]
    for name, value in _extra(work)[0].items():
        work.use(name, value, work.said("extra", name))
    _speed(work, device)
    return Resolved(work.arguments, tuple(work.settings))


def _problems(work: _Resolver, device: Device, world: int) -> list[Problem]:
    config, document = work.config, work.document
    found = list(_extra(work)[1])
    if why := batch_problem(config, world):
        found.append(Problem(document.where(("effective_batch_size",)), f"effective_batch_size: {why}"))
    if config.bf16 and not device.bf16:
        instead = "fp16: true" if device.fp16 else "bf16: false"
        found.append(Problem(document.where(("bf16",)), f"bf16: {device.name} has no bf16: write {instead}"))
    if config.fp16 and not device.fp16:
        found.append(
            Problem(
                document.where(("fp16",)), f"fp16: {device.name} cannot train in fp16: leave it out (fp32), or write bf16: true"
            )
        )
    if config.engine_spec.type.startswith("deepspeed"):
        skipping = [name for name, reaction in config.detectors.items() if reaction == "skip"]
        what = "skip: DeepSpeed updates inside its backward pass, too late to skip: write stop or warn, or another engine"
        found += [Problem(document.where(("detectors", name)), f"detectors.{name}: {what}") for name in skipping]
    return found


def _split(work: _Resolver) -> None:
    if work.config.validation_split is not None:
        work.show("validation_split", work.config.validation_split, work.said("validation_split"))
    elif work.config.validation_dataset:
        work.show("validation_split", 0.0, "derived: there is a validation_dataset")
    else:
        work.show("validation_split", SPLIT, "our default: training on everything has to be said (0)")


def _objective(work: _Resolver) -> None:
    objective = work.config.objective
    work.show("objective", objective.type, work.said("objective") or "our default")
    for name, value in objective.model_dump(exclude={"type", "reference"}).items():
        if value is not None:
            work.use(name, [value] if name == "loss_type" else value, work.said("objective", name))
        else:
            work.show(name, work.default(name), work.library_name(name))
    if objective.type == "dpo":
        work.show("reference", objective.reference, work.said("objective", "reference") or "derived: the model as it starts")


def _method(work: _Resolver) -> None:
    method = work.config.method
    work.show("method", method.type, work.said("method") or "our default")
    if method.type == "lora":
        for name, ours in (("r", "our default (PEFT: 8)"), ("target_modules", "our default (PEFT: the model's own list)")):
            work.show(name, getattr(method, name), work.said("method", name) or ours)
        work.show("lora_alpha", method.alpha, work.said("method", "lora_alpha") or "derived: 2 x r")
        for name, value in (("lora_dropout", 0.0), ("use_rslora", False)):
            mine = getattr(method, name)
            work.show(name, value if mine is None else mine, work.said("method", name) or "PEFT's default")
        work.show("merge", method.merge, work.said("method", "merge") or "our default")


def _learning_rate(work: _Resolver) -> None:
    config = work.config
    if config.learning_rate is not None:
        work.use("learning_rate", config.learning_rate, work.said("learning_rate"))
    elif config.method.type == "lora":
        theirs = work.default("learning_rate")
        work.use("learning_rate", theirs * LORA_FACTOR, f"our default: TRL's {theirs:g} x {LORA_FACTOR} for lora")
    else:
        work.use("learning_rate", work.default("learning_rate"), work.library_name("learning_rate"))


def _batch(work: _Resolver, world: int) -> None:
    config = work.config
    micro = config.per_device_train_batch_size
    said = work.said("per_device_train_batch_size")
    work.use(
        "per_device_train_batch_size", micro, said or "our default (Transformers: 8): the batch is said by effective_batch_size"
    )
    work.use("per_device_eval_batch_size", micro, "derived: as in training")
    steps, whole = config.accumulation(world), config.batch(world)
    if config.effective_batch_size is not None:
        work.use("gradient_accumulation_steps", steps, f"derived: {whole} / ({micro} x {world})")
        work.show("effective_batch_size", whole, work.said("effective_batch_size"))
    else:
        origin = work.said("gradient_accumulation_steps") or work.library_name("gradient_accumulation_steps")
        work.use("gradient_accumulation_steps", steps, origin)
        work.show("effective_batch_size", whole, f"derived: {micro} x {world} x {steps}")


def _precision(work: _Resolver, device: Device) -> None:
    config = work.config
    if config.bf16 is None and not config.fp16:
        has = device.kind == "cuda" and device.bf16
        work.use("bf16", has, f"derived: {device.name} {'has it' if has else 'trains in fp32'}")
    else:
        work.use("bf16", bool(config.bf16), work.said("bf16") or "derived: fp16 is asked for")
    work.use("fp16", bool(config.fp16), work.said("fp16") or "our default")


def _checkpointing(work: _Resolver, needed: bool) -> None:
    asked = work.config.gradient_checkpointing
    origin = work.said("gradient_checkpointing") or f"derived: {'does not fit without' if needed else 'fits without'} (TRL: true)"
    work.use("gradient_checkpointing", needed if asked is None else asked, origin)


def _evaluation(work: _Resolver) -> None:
    config = work.config
    if not config.validation_dataset and config.validation_split == 0:
        work.use("eval_strategy", "no", "derived: there is nothing to evaluate on")
    elif config.eval_steps:
        work.use("eval_strategy", "steps", "derived: eval_steps")
        work.use("eval_steps", config.eval_steps, work.said("eval_steps"))
    else:
        work.use("eval_strategy", "epoch", "our default")


def _speed(work: _Resolver, device: Device) -> None:
    """What `speed` wants of the library's config, where nobody said another thing."""
    packing = bool(work.arguments.get("packing"))
    cuda = device.kind == "cuda"
    micro, length = work.config.per_device_train_batch_size, work.config.max_length
    for name, value in speed.arguments(device.kind, packing=packing, compile_layers=cuda, batch=micro, max_length=length).items():
        if name not in work.arguments and name not in OURS and name != "optim":
            work.use(name, value, "our default, for speed")


def _extra(work: _Resolver) -> tuple[dict[str, Any], list[Problem]]:
    """Fields of the library's class, as their types; and what is wrong with them."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    types: Mapping[str, Any] = typing.get_type_hints(work.kind) if work.config.extra else {}
    library = next(base for base in work.kind.__mro__ if base.__module__.startswith("trl."))
    objective = work.config.objective
    for name, text in work.config.extra.items():
        where = work.document.where(("extra", name), key=True)
        if name in OURS:
            problems.append(Problem(where, f"extra.{name} is set by the trainer itself: remove it"))
        elif name in type(objective).model_fields:
            problems.append(Problem(where, f"'{name}' is an option: say it as objective: {{type: {objective.type}, {name}: ...}}"))
        elif name not in work.library:
            problems.append(Problem(where, f"'{name}' is no field of {library.__name__}{nearest(name, list(work.library))}"))
        else:
            try:
                values[name] = TypeAdapter(types[name]).validate_python(text)
            except ValidationError as error:
                problems.append(
                    Problem(work.document.where(("extra", name)), f"extra.{name}: '{text}': {error.errors()[0]['msg']}")
                )
    return values, problems


def dataset_path(text: str, data_root: Path) -> str:
    """Where a dataset is: an absolute path, a Datasets name as it stands, else below DATAROOT/datasets."""
    if text.startswith(("/", "datasets:")):
        return text
    return str(data_root / "datasets" / text)
