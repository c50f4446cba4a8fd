"""Whether the fast ways compute the same: loss and gradients of a small model against fp32, and packed rows against single ones.

bf16 rounds in each loop alike, so the plain loop is judged as well, and ours must not be worse. Adapters get a B that is not
zero: with B = 0 adding tiny outputs in bf16 loses them, and the plain loop would look worse than it is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen2Config

from benchmarks.baselines.plain import RANK
from benchmarks.baselines.shapes import SHAPES, Shape
from trainer import attention, speed
from trainer.loss import add_fused_loss

SMALL = Shape(512, 1408, 4, 8, 2, 32768, tie_word_embeddings=True)
LENGTH, ROWS, STEPS = 1024, 4, 20
MASKED = 0.3  # share of tokens without a label


def measure(device: str) -> dict[str, Any]:
    """Per method and loop: relative error of the gradient, error of the first loss, largest error of a loss within 20 steps."""
    shape, length, steps = (SMALL, LENGTH, STEPS) if device == "cuda" else (SHAPES["tiny"], 128, 3)
    found: dict[str, Any] = {}
    for method in ("lora", "full"):
        start = model(shape, method, device)
        truth = _run(copy.deepcopy(start).float(), "plain", method, device, length, steps)
        for loop in ("plain", "ours"):
            losses, gradient = _run(copy.deepcopy(start), loop, method, device, length, steps)
            found[f"{method} {loop}"] = {
                "gradient_error": float((gradient - truth[1]).norm() / truth[1].norm()),
                "first_loss_error": abs(losses[0] - truth[0][0]),
                "largest_loss_error": max(abs(one - other) for one, other in zip(losses, truth[0], strict=True)),
                "losses": [round(loss, 5) for loss in losses],
            }
        found[f"{method} fp32"] = {"losses": [round(loss, 5) for loss in truth[0]]}
    return {"exact": found, "packed": packed(shape, device, length)}


def model(shape: Shape, method: str, device: str) -> Any:
    """Weights as bf16 can hold them, so that fp32 begins with the same ones."""
    torch.manual_seed(1)
    with torch.device(device):
        made = AutoModelForCausalLM.from_config(Qwen2Config(**shape.config()), dtype=torch.bfloat16, attn_implementation="sdpa")
        if method == "lora":
            made = get_peft_model(made, LoraConfig(r=RANK, target_modules="all-linear", task_type="CAUSAL_LM"))
            for name, weight in made.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(weight, std=0.02)
    return made.train()


def batches(shape: Shape, length: int, device: str) -> Iterator[tuple[Any, Any]]:
    """Tokens and labels, some of them masked; the same for each loop."""
    chance = torch.Generator(device).manual_seed(2)
    while True:
        tokens = torch.randint(3, shape.vocab_size, (ROWS, length), device=device, generator=chance)
        masked = torch.rand(ROWS, length, device=device, generator=chance) < MASKED
        yield tokens, tokens.masked_fill(masked, -100)


def fast(made: Any, method: str, device: str, longest: int, compiled: bool) -> Any:
    """Prepared as ours."""
    made = speed.prepare(made, method=method, device=device, compile_layers=compiled)
    attention.enable(made, longest)
    add_fused_loss(made.get_base_model() if method == "lora" else made)
    return made


def loss_of(made: Any, fused: bool, device: str, **inputs: Any) -> Any:
    """Mean loss over the tokens with a label."""
    with torch.autocast(device, dtype=torch.bfloat16) if fused and device == "cuda" else nullcontext():
        if not fused:
            return made(**inputs).loss
        out = made(**inputs, use_cache=False, fused_loss=True)
    return out.loss_sum / out.counted


def _run(made: Any, loop: str, method: str, device: str, length: int, steps: int) -> tuple[list[float], Any]:
    shape = SMALL if device == "cuda" else SHAPES["tiny"]
    if loop == "ours":
        made = fast(made, method, device, length, compiled=device == "cuda")
    trained = [weight for weight in made.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-3 if method == "lora" else 1e-4)
    losses, gradient = [], None
    for _, (tokens, labels) in zip(range(steps), batches(shape, length, device), strict=False):
        loss = loss_of(made, loop == "ours", device, input_ids=tokens, labels=labels)
        loss.backward()
        if gradient is None:
            gradient = torch.cat([weight.grad.float().flatten() for weight in trained])
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss))
    return losses, gradient


def packed(shape: Shape, device: str, length: int) -> dict[str, Any]:
    """Losses of sequences packed into one row against each alone; and that a neighbour with other tokens changes nothing."""
    made = fast(model(shape, "lora", device), "lora", device, length, compiled=False)
    chance = torch.Generator(device).manual_seed(3)
    lengths = [length // 2, length // 4, length // 8, length - length // 2 - length // 4 - length // 8]
    parts = [torch.randint(3, shape.vocab_size, (1, n), device=device, generator=chance) for n in lengths]
    positions = torch.cat([torch.arange(n, device=device) for n in lengths])[None]

    def together(sequences: list[Any], only: int) -> float:
        labels = [part.clone() if number == only else torch.full_like(part, -100) for number, part in enumerate(sequences)]
        for label in labels:
            label[:, 0] = -100
        with torch.no_grad():
            rows = {"input_ids": torch.cat(sequences, 1), "labels": torch.cat(labels, 1), "position_ids": positions}
            return float(loss_of(made, True, device, **rows))

    def alone(part: Any) -> float:
        with torch.no_grad():
            return float(loss_of(made, True, device, input_ids=part, labels=part))

    others = [parts[0].flip(1), *parts[1:]]
    return {
        "largest_error": max(abs(together(parts, number) - alone(part)) for number, part in enumerate(parts)),
        "changed_by_neighbour": max(abs(together(parts, number) - together(others, number)) for number in range(1, len(parts))),
        "sequences": len(parts),
    }
