"""What is left of a run besides its checkpoints: the adapter or model, merged where asked, with a card of its origin."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from trainer import checkpoint, durable
from trainer.call import Call
from trainer.errors import Problem, Stopped
from trainer.model import Plan, finite
from trainer.spec import RunConfig
from trainer.together import Together

log = logging.getLogger("trainer")
DROPPED = ("training_args.bin",)  # a pickle, of no use to who serves the model


def publish(trainer: Any, call: Call, run: RunConfig, plan: Plan, about: dict[str, Any], together: Together) -> Path:
    """Write the trained model where it belongs, as a whole; called on every rank. Raises OSError on rank 0."""
    lora = run.method.type == "lora"
    if together.any(not finite(trainer.model)):
        raise Stopped(Problem("", "the trained weights are not finite numbers: they are not published"))
    target = call.output(lora)
    aside = target.with_name(f".{target.name}.saving")
    if together.rank == 0:
        checkpoint.remove(aside)
        aside.mkdir(parents=True)
    together.barrier()
    trainer.save_model(str(aside))
    together.barrier()
    if together.rank == 0:
        _finish(aside, target, about)
        if lora and getattr(run.method, "merge", False):
            _merge(target, call.output(False), plan, about)
    together.barrier()
    return target


def _finish(aside: Path, target: Path, about: dict[str, Any]) -> None:
    for name in DROPPED:
        (aside / name).unlink(missing_ok=True)
    durable.write(aside / "README.md", card(target.name, about))
    checkpoint.seal(aside, int(about["step"]), about, checkpoint.settle(aside, checkpoint.contents(aside)))
    old = target.with_name(f".{target.name}.replaced")
    checkpoint.remove(old)
    if target.exists():
        target.rename(old)
    aside.rename(target)
    durable.sync(target.parent)
    checkpoint.remove(old)
    log.info("the trained model is in %s", target)


def _merge(adapter: Path, target: Path, plan: Plan, about: dict[str, Any]) -> None:
    """The base model with the adapter added to its weights, in the type that the base has on disk."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(str(plan.path), dtype="auto", local_files_only=True)
    merged = PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()
    aside = target.with_name(f".{target.name}.saving")
    checkpoint.remove(aside)
    merged.save_pretrained(str(aside))
    plan.tokenizer.save_pretrained(str(aside))
    _finish(aside, target, {**about, "merged": str(adapter)})


def card(name: str, about: dict[str, Any]) -> str:
    """A model card: what it was made of, by what, and how it came out."""
    identity, metrics = about["identity"], about.get("metrics", {})
    head = ["---", "library_name: transformers", "tags: [reconcile]", "---", f"# {name}", ""]
    rows = {
        "base model": about["model_path"],
        "base model digest": identity["model"],
        "data digest": identity["data"],
        "rows": f"{about['rows'][0]} for training, {about['rows'][1]} for validation",
        "objective": identity["objective"]["type"],
        "method": ", ".join(f"{k} {v}" for k, v in identity["method"].items()),
        "engine": f"{identity['engine']} on {about['world']} ranks of {about['device']}",
        "steps": about["step"],
        "commit": about["commit"] or "not said by the launcher",
        "stack digest": about["stack"] or "not said by the launcher",
        "environment digest": about["environment"],
        "libraries": ", ".join(f"{k} {v}" for k, v in about["versions"].items()),
        **{k: f"{v:.6g}" for k, v in metrics.items() if isinstance(v, float)},
    }
    return "\n".join([*head, "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items()), ""])
