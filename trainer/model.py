"""The model and its tokenizer: looked at before anything is loaded, refused with every reason at once, loaded once."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.durable import digest_of
from trainer.errors import Problem, Refused, nearest
from trainer.memory import Shape
from trainer.spec import Lora, RunConfig

PROBE = "one 2 three"  # text that every tokenizer gives back, but for blanks


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a model without its weights. `linear`: name of each linear layer -> (inputs, outputs)."""

    path: Path
    config: Any
    tokenizer: Any
    shape: Shape
    linear: dict[str, tuple[int, int]]
    targets: tuple[str, ...]
    identity: str

    @property
    def attention(self) -> int:
        """Width of all heads together."""
        heads = self.config.num_attention_heads
        return int(heads * (getattr(self.config, "head_dim", None) or self.config.hidden_size // heads))


def plan(run: RunConfig) -> Plan:
    """Look at the model of a run. Raises Refused: no such folder, no causal language model, tokenizer, template, LoRA targets."""
    path = Path(run.model)
    if problems := _folder(path):
        raise Refused(problems)
    config, tokenizer = _read(path)
    linear, parameters, embedding = _outline(config, path)
    problems = [*_tokenizer(tokenizer, embedding, path), *_template(tokenizer, run, path)]
    targets: tuple[str, ...] = ()
    if isinstance(run.method, Lora):
        targets, wrong = lora_targets(run.method, linear)
        problems += [Problem("method.target_modules", text) for text in wrong]
    if problems:
        raise Refused(problems)
    trainable = parameters
    if isinstance(run.method, Lora):
        trainable = sum(run.method.r * sum(linear[name]) for name in targets)
    whole = parameters + (trainable if isinstance(run.method, Lora) else 0)
    return Plan(path, config, tokenizer, _shape(config, whole, trainable), linear, targets, identity(path))


def _folder(path: Path) -> list[Problem]:
    if not path.is_dir():
        near = nearest(path.name, [p.name for p in path.parent.iterdir() if p.is_dir()]) if path.parent.is_dir() else ""
        return [Problem("model", f"there is no folder {path}{near}")]
    missing = [name for name in ("config.json",) if not (path / name).is_file()]
    if not any(path.glob("*.safetensors")) and not any(path.glob("*.bin")):
        missing.append("*.safetensors")
    return [Problem("model", f"{path} has no {name}: it is no Transformers model") for name in missing]


def _read(path: Path) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer

    found: list[Any] = []
    problems = []
    for what, kind in (("config.json", AutoConfig), ("tokenizer", AutoTokenizer)):
        try:
            found.append(kind.from_pretrained(str(path), local_files_only=True))
        except (OSError, ValueError, KeyError, ImportError, TypeError) as error:
            problems.append(Problem("model", f"{path}: its {what} cannot be used: {str(error).splitlines()[0]}"))
    if problems:
        raise Refused(problems)
    return found[0], found[1]


def _outline(config: Any, path: Path) -> tuple[dict[str, tuple[int, int]], int, int]:
    """Linear layers, number of parameters and rows of the embedding, from a model without memory."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except (ValueError, KeyError) as error:
        raise Refused(Problem("model", f"{path} is no causal language model: {str(error).splitlines()[0]}")) from error
    head = model.get_output_embeddings()
    linear = {
        name: (module.in_features, module.out_features)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not head
    }
    return linear, sum(p.numel() for p in model.parameters()), int(model.get_input_embeddings().weight.shape[0])


def _tokenizer(tokenizer: Any, embedding: int, path: Path) -> list[Problem]:
    problems = []
    if len(tokenizer) > embedding:
        problems.append(
            Problem("model", f"{path}: the tokenizer has {len(tokenizer)} tokens, the model {embedding}: they are not a pair")
        )
    if PROBE.replace(" ", "") not in tokenizer.decode(tokenizer.encode(PROBE, add_special_tokens=False)).replace(" ", ""):
        kind = type(tokenizer).__name__
        problems.append(Problem("model", f"{path}: its tokenizer loses text: '{PROBE}' does not come back (read as {kind})"))
    if tokenizer.eos_token is None:
        problems.append(Problem("model", f"{path}: the tokenizer has no eos_token, so nothing says where an answer ends"))
    return problems


def _template(tokenizer: Any, run: RunConfig, path: Path) -> list[Problem]:
    if tokenizer.chat_template or "chat_template_path" in run.extra:
        return []
    instead = "put a chat_template.jinja beside it, or say extra: {chat_template_path: FILE}"
    what = f"{path}: the tokenizer has no chat template: {instead}"
    return [Problem("model", what)]


def lora_targets(method: Lora, linear: dict[str, tuple[int, int]]) -> tuple[tuple[str, ...], list[str]]:
    """The layers that get adapters, as PEFT matches names, and what is wrong: a target that matches nothing."""
    if method.target_modules == "all-linear":
        return tuple(linear), []
    there = sorted({name.rsplit(".", 1)[-1] for name in linear})
    found: list[str] = []
    wrong = []
    for target in method.target_modules:
        matched = [name for name in linear if name == target or name.endswith(f".{target}")]
        if not matched:
            wrong.append(f"'{target}' matches no linear layer of this model; there are: {', '.join(there)}{nearest(target, there)}")
        found += matched
    return tuple(dict.fromkeys(found)), wrong


def _shape(config: Any, parameters: int, trainable: int) -> Shape:
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Shape(
        parameters=parameters,
        trainable=trainable,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        key_value=width * (getattr(config, "num_key_value_heads", None) or heads),
        vocabulary=config.vocab_size,
    )


def identity(path: Path) -> str:
    """A digest of what the model is: its configuration, its tokenizer, and name and size of each weights file."""
    parts: dict[str, Any] = {}
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (path / name).is_file():
            parts[name] = (path / name).read_text(encoding="utf-8", errors="replace")
    for file in sorted(path.glob("*.safetensors")):
        parts[file.name] = [file.stat().st_size, _header(file)]
    return digest_of(parts)


def _header(file: Path) -> str:
    """The table of a safetensors file: names, shapes and types."""
    with file.open("rb") as weights:
        size = int.from_bytes(weights.read(8), "little")
        return weights.read(min(size, 2**24)).decode("utf-8", errors="replace")


def load(found: Plan, width: str, reference: Path | None = None) -> Any:
    """The model with its weights, in torch's type `width`. Raises Refused where weights are missing: they would be random."""
    import torch
    from transformers import AutoModelForCausalLM

    path = reference or found.path
    model, report = AutoModelForCausalLM.from_pretrained(
        str(path), dtype=getattr(torch, width), local_files_only=True, output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        shown = ", ".join(missing[:3])
        raise Refused(Problem("model", f"{path} has no weights for {len(missing)} parameters ({shown} ...): they would be random"))
    model.config.use_cache = False
    return model


def adapter(method: Lora) -> Any:
    """PEFT's configuration of the adapters."""
    from peft import LoraConfig

    said = {"lora_dropout": method.lora_dropout, "use_rslora": method.use_rslora}
    return LoraConfig(
        r=method.r,
        lora_alpha=method.alpha,
        target_modules=method.target_modules,
        task_type="CAUSAL_LM",
        **{name: value for name, value in said.items() if value is not None},
    )


def finite(model: Any) -> bool:
    """Whether every trained value that this rank holds, whole or a shard of it, is a finite number."""
    held = (p for p in model.parameters() if p.requires_grad)
    parts = (p.to_local() if hasattr(p, "to_local") else getattr(p, "ds_tensor", p) for p in held)
    return all(bool(part.detach().isfinite().all()) for part in parts)


def versions() -> dict[str, str]:
    """The libraries that a result depends on, as far as they are there: DeepSpeed and Liger need not be."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "deepspeed", "liger-kernel"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
