"""How much memory a run needs on one GPU, before anything is loaded: an estimate, and what to change where it is too much.

Weights, gradients and optimizer are counted exactly; activations are counted for layers that keep each input of a linear layer and
of a norm once, with attention that keeps no square matrix, and a loss that never holds all logits (but for DPO, which does).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainer.spec import Ddp, DeepSpeed, EngineSpec, Fsdp

GIB = 2**30
CONTEXT = 1.0 * GIB  # CUDA context, NCCL buffers and cuBLAS workspaces
SPARE = 0.95  # share of a card that an allocator with fragments can use
ADAM = 2  # states a parameter


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's dimensions. `parameters` includes embeddings; `trainable` is what the method trains."""

    parameters: int
    trainable: int
    layers: int
    hidden: int
    intermediate: int
    key_value: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of one GPU. `width`: bytes a value of the computation (2 bf16 or fp16, 4 fp32)."""

    engine: EngineSpec
    world: int
    batch: int
    length: int
    width: int
    lora: bool
    checkpointing: bool
    preferences: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes on one GPU, by what holds them."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    other: float

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits + self.other

    def fits(self, card: int) -> bool:
        """Whether a card of so many bytes can hold it."""
        return self.total <= card * SPARE


def estimate(shape: Shape, load: Load) -> Estimate:
    """The bytes that `load` needs on one GPU."""
    weights, gradients, optimizer = _states(shape, load)
    rows = load.batch * (2 if load.preferences else 1)  # chosen and rejected go through together
    tokens = rows * load.length
    layer = load.width * (6 * shape.hidden + 2 * shape.key_value + 4 * shape.intermediate)
    kept = load.width * shape.hidden
    activations = tokens * (layer + kept * shape.layers if load.checkpointing else layer * shape.layers)
    chunk = tokens if load.preferences else min(tokens, 1024)
    logits = chunk * shape.vocabulary * (load.width + 4)
    return Estimate(weights, gradients, optimizer, activations, logits, CONTEXT)


def _states(shape: Shape, load: Load) -> tuple[float, float, float]:
    """Weights, gradients, optimizer. Master values and adapters are fp32; full under ddp keeps everything in the compute width."""
    engine, frozen = load.engine, shape.parameters - shape.trainable
    master = load.width if isinstance(engine, Ddp) and not load.lora else 4
    weights = float(frozen * load.width + shape.trainable * master)
    gradients, optimizer = float(shape.trainable * master), float(shape.trainable * master * ADAM)
    if isinstance(engine, Ddp):
        return weights, gradients, optimizer
    if isinstance(engine, DeepSpeed):
        kept = 0.0 if engine.offload_optimizer == "cpu" else shape.trainable * 4 * (ADAM + 1) / load.world
        if engine.stage == 2:
            return float(shape.parameters * load.width), shape.trainable * 4 / load.world, kept
        optimizer = kept * load.world
    gathered = 2 * shape.parameters / max(shape.layers, 1) * load.width  # the layer at work, and the next
    if isinstance(engine, Fsdp) and engine.cpu_offload:
        return gathered, 0.0, 0.0
    away = isinstance(engine, DeepSpeed) and engine.offload_param == "cpu"
    held = 0.0 if away else weights / load.world
    return held + gathered, gradients / load.world, optimizer / load.world


def advice(shape: Shape, load: Load, card: int) -> list[str]:
    """Changes that would make it fit, the cheapest first; each is the smallest of its kind, tried by the same estimate."""
    found = [words for words, changed in _changes(load) if estimate(shape, changed).fits(card)]
    return found[:3] or ["more GPUs with engine: fsdp or deepspeed-zero3, or a smaller model"]


def _changes(load: Load) -> Iterator[tuple[str, Load]]:
    checked = replace(load, checkpointing=True)
    if not load.checkpointing:
        yield "gradient_checkpointing: true", checked
    for batch in _halves(load.batch):
        yield f"per_device_train_batch_size: {batch} (more accumulation keeps the effective batch)", replace(load, batch=batch)
    if load.world > 1 and load.engine.type in ("ddp", "deepspeed-zero2"):
        yield "engine: fsdp", replace(load, engine=Fsdp(type="fsdp"))
        yield "engine: fsdp and gradient_checkpointing: true", replace(checked, engine=Fsdp(type="fsdp"))
    small = replace(checked, batch=1)
    yield "gradient_checkpointing: true and per_device_train_batch_size: 1", small
    for length in _halves(load.length):
        yield f"gradient_checkpointing: true, per_device_train_batch_size: 1, max_length: {length}", replace(small, length=length)
    offload = DeepSpeed(type="deepspeed-zero3", offload_optimizer="cpu", offload_param="cpu")
    yield "engine: {type: deepspeed-zero3, offload_optimizer: cpu, offload_param: cpu}", replace(small, engine=offload)


def _halves(number: int) -> Iterator[int]:
    while number > 1:
        number //= 2
        yield number
