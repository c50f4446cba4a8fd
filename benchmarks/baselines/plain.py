"""The plain loop, FROZEN: what somebody writes who knows PEFT and PyTorch and has tuned nothing. Never make it faster or slower.

A bf16 model with PEFT's defaults (adapters in fp32, no autocast), SDPA, `use_cache` as the model has it, torch's AdamW, no
gradient checkpointing, fresh random tokens each step. A ratio to this loop counts only where the loop itself lands on `STATED`,
in the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.baselines.shapes import Shape

LENGTH = 4096
RANK = 16
# (model, method) -> batch, and tokens/s measured by hand on one H200 with torch 2.11+cu130, transformers 5.17, peft 0.21
STATED = {("1.5b", "lora"): (4, 25_450), ("7.6b", "lora"): (2, 9_590), ("1.5b", "full"): (4, 37_600)}
TOLERANCE = 0.05  # of the stated tokens/s; beyond it the ratio is void


def model(shape: Shape, method: str, device: str) -> Any:
    """The model with random weights in bf16, for LoRA with adapters of rank 16 on all linear layers."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, Qwen2Config

    torch.manual_seed(0)
    with torch.device(device):
        made = AutoModelForCausalLM.from_config(Qwen2Config(**shape.config()), dtype=torch.bfloat16, attn_implementation="sdpa")
        if method == "lora":
            made = get_peft_model(made, LoraConfig(r=RANK, target_modules="all-linear", task_type="CAUSAL_LM"))
    return made.train()


def step(shape: Shape, method: str, batch: int, length: int, device: str) -> Callable[[], Any]:
    """A function that takes one step and returns its loss, a tensor on the device; nothing in it waits for the device."""
    import torch

    trained = model(shape, method, device)
    optimiser = torch.optim.AdamW([weight for weight in trained.parameters() if weight.requires_grad], lr=1e-4)

    def one() -> Any:
        tokens = torch.randint(0, shape.vocab_size, (batch, length), device=device)
        loss = trained(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        return loss.detach()

    return one
