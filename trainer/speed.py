"""What makes a model and its training loop fast: chosen in one place, each choice with its reason, shown before a start.

What each gave, measured by hand on one H200 (1.5B, LoRA, batch 4 x 4096, ms a step): 643 as PEFT's documentation has it; 419
without fp32 matmuls in the adapters and without a cache nobody reads; 319 with Liger's fused loss and norms, 313 with larger
chunks of it; 279 with each decoder layer compiled instead of Liger's norms. `benchmarks/training` measures it again. On a CPU
everything is plain PyTorch.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

CPU = "the device is a CPU: plain PyTorch"
WORKERS = 2  # processes that collate and pin the next batches while a step runs


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision and why it was taken."""

    value: bool
    why: str


@dataclass(frozen=True, slots=True)
class Speed:
    """All decisions of one run, for the resolved config."""

    compile_layers: Choice
    fused_loss: Choice
    maskless_attention: Choice

    def resolved(self) -> dict[str, dict[str, Any]]:
        """name -> value and why."""
        return asdict(self)


def choose(*, device: str, objective: str, engine: str, packing: bool = False, compile_layers: bool | None = None) -> Speed:
    """What a run shall have, from its own settings; `compile_layers` is what the user asked for, None where nothing.

    `device` cuda or cpu, `objective` sft or dpo, `engine` as in run.yaml. What a model cannot have is found when it is there:
    `fitted`.
    """
    cuda, zero3 = device == "cuda", engine == "deepspeed-zero3"
    if zero3:
        compiled = Choice(False, "ZeRO-3 gathers weights inside a layer, where compiled code has no hooks")
    elif compile_layers is not None:
        compiled = Choice(compile_layers, "asked for")
    else:
        compiled = Choice(cuda, "norms, activations and casts in few kernels; compiled once for all layers" if cuda else CPU)
    if objective != "sft":
        fused = Choice(False, f"{objective} needs the log-probability of each token: TRL's own head computes it in chunks")
    elif zero3:
        fused = Choice(False, "ZeRO-3 keeps the head in parts: TRL's own head gathers it")
    else:
        fused = Choice(cuda, "logits are taken once and never held whole" if cuda else CPU)
    if packing:
        maskless = Choice(True, "packed sequences attend within themselves")
    else:
        maskless = Choice(cuda, "rows are padded on the right: no mask is needed" if cuda else CPU)
    return Speed(compiled, fused, maskless)


def fitted(speed: Speed, model: Any) -> Speed:
    """The same, without what this model cannot have; the reasons say so."""
    from trainer import attention, loss

    base = base_of(model)
    fused, maskless = speed.fused_loss, speed.maskless_attention
    if fused.value and (why := loss.unfit(base)):
        fused = Choice(False, f"{type(base).__name__} has {why}: TRL's own head takes it into account")
    if maskless.value and (why := attention.unfit(base.config)):
        maskless = Choice(False, f"{type(base).__name__} has {why}: SDPA with a mask")
    return Speed(speed.compile_layers, fused, maskless)


def apply(trainer: Any, *, method: str, engine: str, device: str, compile_layers: bool | None = None) -> Speed:
    """Choose for a trainer of TRL that has its model and has not begun, and do it, before the engine wraps the model.

    A `FusedLossTrainer` gets the fused loss, any other keeps TRL's own. Returns what was done, with the reasons.
    """
    from trainer import attention

    packing = bool(getattr(trainer.args, "packing", False))
    objective = "sft" if hasattr(trainer, "fuse_loss") else "another objective"
    wanted = choose(device=device, objective=objective, engine=engine, packing=packing, compile_layers=compile_layers)
    done = fitted(wanted, trainer.model)
    if done.fused_loss.value and device == "cuda" and not installed("liger_kernel"):
        done = replace(done, fused_loss=Choice(False, "liger-kernel is not in this environment: TRL's own head"))
    if done.maskless_attention.value:
        attention.enable(trainer.model, trainer.args.max_length, padded_right=pads_right(trainer.data_collator))
    if done.fused_loss.value and not trainer.fuse_loss():
        done = replace(done, fused_loss=Choice(False, "this loss needs the log-probability of each token: TRL's own head"))
    prepare(trainer.model, method=method, device=device, compile_layers=done.compile_layers.value)
    return done


def prepare(model: Any, *, method: str, device: str, compile_layers: bool) -> Any:
    """The model made ready before an engine wraps it: each decoder layer compiled, where that is wanted.

    What is saved of it stays as it was. TRL's trainers call it without a cache, which compiled layers need: with one, each is
    compiled anew for its number. Layers compile in their first step: 10 to 18 s on an H200, 3 to 5 s where they were before. The
    same object is returned. Raises ValueError where `method` (lora, full) is not what the model is about to be trained by, and
    where layers shall be compiled and there are none, or no compiler for `device` (cuda, cpu).
    """
    if wrong := _not_trained_by(model, method):
        raise ValueError(f"{type(model).__name__} is not ready for {method}: {wrong}")
    if compile_layers:
        if missing := _missing_compiler(device):
            raise ValueError(f"layers cannot be compiled for {device}: {missing}")
        layers = list(decoder_layers(model))
        if not layers:
            raise ValueError(
                f"{type(model).__name__} names no decoder layers (_no_split_modules): they cannot be compiled one by one"
            )
        for layer in layers:
            layer.compile()
    return model


def _not_trained_by(model: Any, method: str) -> str:
    trained = {weight.requires_grad for weight in model.parameters()}
    if method == "full":
        return "some of its weights are frozen" if False in trained else ""
    if trained == {True}:
        return "all of its weights would be trained"
    return "" if True in trained else "it has no adapter to train"


def _missing_compiler(device: str) -> str:
    if device == "cuda":
        return "" if installed("triton") else "triton is not installed"
    return "" if any(map(shutil.which, ("g++", "clang++"))) else "there is no g++ and no clang++"


def installed(package: str) -> bool:
    """Whether this environment has a package."""
    return find_spec(package) is not None


def pads_right(collator: Any) -> bool:
    """Whether a collator is known to pad behind the tokens: SFTTrainer's own, and a test holds it to that."""
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    return type(collator) is DataCollatorForLanguageModeling


def base_of(model: Any) -> Any:
    """The causal language model itself, without PEFT around it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def decoder_layers(model: Any) -> Iterator[Any]:
    """The blocks that transformers never splits over devices, which are a decoder's layers."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    return (module for module in model.modules() if type(module).__name__ in names)


def arguments(device: str, *, packing: bool, compile_layers: bool, batch: int, max_length: int) -> dict[str, Any]:
    """Arguments of TRL's configs that belong to speed; what the user says goes before them.

    Packed batches of compiled layers get one constant shape: `batch` rows of `max_length` tokens in one.
    """
    found: dict[str, Any] = {"gradient_checkpointing": False, "optim": "adamw_torch"}
    if device == "cuda":
        found |= {
            "optim": "adamw_torch_fused",
            "dataloader_pin_memory": True,
            "dataloader_num_workers": WORKERS,
            "dataloader_persistent_workers": True,
            "dataloader_prefetch_factor": 2,
            "accelerator_config": {"non_blocking": True},
            "logging_nan_inf_filter": False,  # it waits for the loss of each step; a detector looks at what is logged
        }
    if packing:
        found |= {"packing": True, "packing_strategy": "bfd", "pad_to_multiple_of": batch * max_length if compile_layers else None}
    return found
