"""RunConfig: what stands in run.yaml, and under `run` in a TrainingJob. Values only; nothing is read or loaded here.

Keys are TRL's, Transformers' and PEFT's own (trl 1.16.0, transformers 5.24.0, peft 0.21.2). None is that library's default.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, field_validator, model_validator

Detector = Literal["nan", "loss-spike", "stalled-loss"]
Reaction = Literal["warn", "stop", "skip"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup", "warmup_stable_decay"]
Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
DETECTORS: dict[Detector, Reaction] = {"nan": "stop", "loss-spike": "warn", "stalled-loss": "warn"}


def _longer(value: Any) -> Any:
    """`method: lora` is short for `method: {type: lora}`."""
    return {"type": value} if isinstance(value, str) else value


Tagged = BeforeValidator(_longer)


class Closed(BaseModel):
    """Frozen, and refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Sft(Closed):
    """Supervised fine-tuning: SFTConfig's own options."""

    type: Literal["sft"] = "sft"
    packing: StrictBool | None = None
    assistant_only_loss: StrictBool | None = None


class Dpo(Closed):
    """Preference optimisation: DPOConfig's own options. `reference`: default is the model as it starts."""

    type: Literal["dpo"]
    beta: Positive | None = None
    loss_type: Literal["sigmoid", "hinge", "ipo"] | None = None
    reference: str | None = None


class Lora(Closed):
    """Adapters. PEFT's own defaults are r 8, lora_alpha 8 and the model's list of targets; ours are the site's (all-linear)."""

    type: Literal["lora"] = "lora"
    r: Count = 16
    lora_alpha: Count | None = None
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    target_modules: str | Annotated[list[str], Field(min_length=1)] = "all-linear"
    use_rslora: StrictBool | None = None
    merge: StrictBool = False

    @field_validator("target_modules")
    @classmethod
    def _no_pattern(cls, value: str | list[str]) -> str | list[str]:
        if isinstance(value, str) and value != "all-linear":
            raise ValueError(f"'{value}': write all-linear, or a list of module names such as [q_proj, v_proj]")
        return value

    @property
    def alpha(self) -> int:
        """lora_alpha, 2 x r where it was not said."""
        return self.lora_alpha or 2 * self.r


class Full(Closed):
    """Every parameter is trained."""

    type: Literal["full"]


class Ddp(Closed):
    """The whole model on each GPU."""

    type: Literal["ddp"] = "ddp"


class Fsdp(Closed):
    """Parameters, gradients and optimizer sharded over all ranks (fully_shard)."""

    type: Literal["fsdp"]
    cpu_offload: StrictBool = False
    reshard_after_forward: StrictBool = True


class DeepSpeed(Closed):
    """ZeRO stage 2 (gradients and optimizer sharded) or 3 (parameters as well)."""

    type: Literal["deepspeed-zero2", "deepspeed-zero3"]
    offload_optimizer: Literal["none", "cpu"] = "none"
    offload_param: Literal["none", "cpu"] = "none"

    @property
    def stage(self) -> int:
        return int(self.type[-1])

    @model_validator(mode="after")
    def _stage_2_keeps_parameters(self) -> DeepSpeed:
        if self.stage == 2 and self.offload_param != "none":
            raise ValueError("offload_param is an option of deepspeed-zero3, not of deepspeed-zero2")
        return self


Objective = Annotated[Sft | Dpo, Field(discriminator="type"), Tagged]
Method = Annotated[Lora | Full, Field(discriminator="type"), Tagged]
Engine = Annotated[Ddp | Fsdp | DeepSpeed, Field(discriminator="type"), Tagged]
EngineSpec = Ddp | Fsdp | DeepSpeed


class RunConfig(Closed):
    """One run. `effective_batch_size` or `gradient_accumulation_steps`, `max_steps` or `num_train_epochs`, `bf16` or `fp16`."""

    model: str
    dataset: str
    validation_dataset: str | None = None
    validation_split: Annotated[float, Field(ge=0, lt=0.5)] | None = None
    objective: Objective = Sft()
    method: Method = Lora()
    engine: Engine | None = None
    learning_rate: Annotated[float, Field(gt=0, lt=1)] | None = None
    lr_scheduler_type: Scheduler | None = None
    warmup_steps: NotNegative | None = None
    num_train_epochs: Positive | None = None
    max_steps: Count | None = None
    per_device_train_batch_size: Count = 1
    gradient_accumulation_steps: Count | None = None
    effective_batch_size: Count | None = None
    max_length: Count = 4096
    bf16: StrictBool | None = None
    fp16: StrictBool | None = None
    gradient_checkpointing: StrictBool | None = None
    optim: str | None = None
    weight_decay: NotNegative | None = None
    max_grad_norm: Positive | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    logging_steps: Count | None = None
    eval_steps: Count | None = None
    save_steps: Count | None = None
    save_total_limit: Count = 3
    detectors: dict[Detector, Reaction] = {}
    extra: dict[str, Any] = {}

    @field_validator("model")
    @classmethod
    def _a_folder(cls, value: str) -> str:
        if not value.startswith("/"):
            raise ValueError(f"'{value}' is not an absolute path: the registry gives the path of a registered model")
        return value

    @property
    def engine_spec(self) -> EngineSpec:
        """The engine that was asked for; without one: ddp for lora, fsdp for full, which does not fit under ddp."""
        if self.engine is not None:
            return self.engine
        return Ddp() if self.method.type == "lora" else Fsdp(type="fsdp")

    def reaction(self, detector: Detector) -> Reaction:
        """What is done when `detector` finds something."""
        return self.detectors.get(detector, DETECTORS[detector])

    def accumulation(self, world: int) -> int:
        """Steps of accumulation on `world` GPUs; `batch_problem` says beforehand whether there are any."""
        if self.effective_batch_size is None:
            return self.gradient_accumulation_steps or 1
        return self.effective_batch_size // (self.per_device_train_batch_size * world)

    def batch(self, world: int) -> int:
        """Rows an optimizer step on `world` GPUs."""
        return self.per_device_train_batch_size * world * self.accumulation(world)


def batch_problem(config: RunConfig, world: int) -> str:
    """Why the wanted effective batch cannot be had on `world` GPUs, with the nearest that can; empty where it can."""
    wanted, micro = config.effective_batch_size, config.per_device_train_batch_size * world
    if wanted is None or wanted % micro == 0:
        return ""
    low = wanted // micro * micro
    near = f"{low} or {low + micro}" if low else str(micro)
    devices = f"{config.per_device_train_batch_size} a device x {world} GPU{'' if world == 1 else 's'}"
    return f"{wanted} is not a multiple of {devices} = {micro}; nearest: {near}"


def options(kind: type[BaseModel]) -> tuple[str, ...]:
    """The tags of a member of a union."""
    return get_args(kind.model_fields["type"].annotation)


FAMILIES: tuple[tuple[type[Closed], ...], ...] = ((Sft, Dpo), (Lora, Full), (Ddp, Fsdp, DeepSpeed))


def siblings(kind: type[BaseModel]) -> tuple[type[Closed], ...]:
    """All members of the union that `kind` belongs to."""
    return next((family for family in FAMILIES if kind in family), ())
