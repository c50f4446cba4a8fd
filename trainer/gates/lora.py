"""LoRA over all ranks on a small set that is built in: the loss falls, the ranks stay equal, and their scaling is recorded."""

from __future__ import annotations

import argparse
import hashlib
import time
from typing import Any

from trainer.gates import backend
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome, Problem

STEPS, ALONE, ROWS, RATE, RANK = 60, 10, 4, 1e-2, 16
FALLS_TO = 0.7  # of the first loss: a random model that learns nothing stays at 1
PAIRS = (
    ("capital of France", "Paris"),
    ("capital of Japan", "Tokyo"),
    ("法国的首都", "巴黎"),
    ("日本的首都", "东京"),
    ("2 + 3", "5"),
    ("7 + 1", "8"),
    ("opposite of hot", "cold"),
    ("opposite of up", "down"),
    ("colour of the sky", "blue"),
    ("colour of grass", "green"),
    ("天空的颜色", "蓝色"),
    ("草的颜色", "绿色"),
    ("plural of mouse", "mice"),
    ("plural of tooth", "teeth"),
    ("first month", "January"),
    ("last month", "December"),
)
SHAPE = {
    "vocab_size": 256,  # bytes: no tokenizer that could be missing
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,  # the head is frozen: with the usual 0.02 its logits could never be far apart
    "bos_token_id": None,
    "eos_token_id": None,
}


def model(device: Any) -> Any:
    """A tiny decoder with random weights and adapters, the same on every rank."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, Qwen2Config

    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(Qwen2Config(**SHAPE))
    return get_peft_model(base, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")).to(
        device
    )


def batch(step: int, rank: int, world: int, device: Any) -> tuple[Any, Any, Any]:
    """Rows of a step on a rank: tokens, mask, and labels of the answers alone."""
    import torch

    picked = [PAIRS[((step * world + rank) * ROWS + number) % len(PAIRS)] for number in range(ROWS)]
    rows = [((asked + ": ").encode(), (answer + "\n").encode()) for asked, answer in picked]
    longest = max(len(asked) + len(answer) for asked, answer in rows)
    tokens, labels = torch.zeros(ROWS, longest, dtype=torch.long), torch.full((ROWS, longest), -100)
    for number, (asked, answer) in enumerate(rows):
        whole = torch.tensor(list(asked + answer))
        tokens[number, : len(whole)] = whole
        labels[number, len(asked) : len(whole)] = whole[len(asked) :]
    return tokens.to(device), (tokens > 0).long().to(device), labels.to(device)


def train(made: Any, steps: int, rank: int, world: int, device: Any) -> dict[str, Any]:
    """Losses of all steps, tokens/s without the first steps, and a digest of the adapters at the end."""
    import torch

    trained = [weight for weight in made.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE)
    losses, seen, warm, began = [], 0, min(3, steps - 1), time.perf_counter()
    for step in range(steps):
        if step == warm:
            backend.wait(device)
            seen, began = 0, time.perf_counter()
        tokens, mask, labels = batch(step, rank, world, device)
        loss = made(input_ids=tokens, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        seen += tokens.numel()
    backend.wait(device)
    rate = seen / (time.perf_counter() - began)
    digest = hashlib.sha256(b"".join(weight.detach().cpu().numpy().tobytes() for weight in trained)).hexdigest()
    return {"losses": [float(loss) for loss in losses], "tokens_per_s": rate, "adapters": digest[:16]}


def alone(group: Group, device: Any) -> float:
    """Tokens/s of rank 0 by itself, while the others wait."""
    said = group.all_do("a run of one rank", lambda: train(model(device), ALONE, 0, 1, device) if group.rank == 0 else None)
    return float(said[0]["tokens_per_s"])


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """One rank, then all; what the losses did, whether the ranks are equal, and what the ranks add up to."""
    from torch.nn.parallel import DistributedDataParallel

    single = alone(group, device)

    def together() -> dict[str, Any]:
        wrapped = DistributedDataParallel(model(device), device_ids=[device.index] if device.index is not None else None)
        return train(wrapped, STEPS, group.rank, group.world, device)

    said = group.all_do("training on all ranks", together)
    first, last = (sum(sum(one["losses"][part]) for one in said) / len(said) / 4 for part in (slice(0, 4), slice(-4, None)))
    rate = sum(one["tokens_per_s"] for one in said)
    outcome.evidence |= {
        "first_loss": round(first, 4),
        "last_loss": round(last, 4),
        "steps": STEPS,
        "tokens_per_s": round(rate, 1),
        "tokens_per_s_of_one": round(single, 1),
        "scaling": round(rate / (group.world * single), 3),
    }
    outcome.problems += judged(first, last, [one["adapters"] for one in said])


def judged(first: float, last: float, adapters: list[str]) -> list[Problem]:
    """A loss that did not fall, or is no number, and ranks that ended with other adapters than rank 0."""
    found = []
    if not last <= FALLS_TO * first:
        found.append(
            Problem("LossDidNotFall", f"from {first:.3f} to {last:.3f} in {STEPS} steps; {FALLS_TO:g} of the first was expected")
        )
    if other := tuple(rank for rank, mine in enumerate(adapters) if mine != adapters[0]):
        found.append(Problem("RanksDiffer", "the adapters of ranks that trained together are not equal", other))
    return found
