"""Tiny models with random weights, of several families, and what can be done to them."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from peft import LoraConfig, get_peft_model

VOCABULARY = 97
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
MIXTURE = {"num_local_experts": 2, "num_experts_per_tok": 1}


def config(family: str, **more: Any) -> Any:
    """The configuration of a family of transformers: Qwen2, Llama, Gemma2 ..."""
    return getattr(hf, f"{family}Config")(**{**SMALL, **more})


def causal(family: str, **more: Any) -> Any:
    """A causal language model in fp32, the same each time, trained without dropout."""
    torch.manual_seed(5)
    return hf.AutoModelForCausalLM.from_config(config(family, **more)).train()


def with_adapters(model: Any) -> Any:
    """The model under PEFT; B is not zero, so that what adapters add shows in the loss."""
    model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    return model


def made(family: str, method: str, **more: Any) -> Any:
    """One that LoRA or full fine-tuning trains."""
    model = causal(family, **more)
    return with_adapters(model) if method == "lora" else model


def base(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def tokens(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def masked(labels: torch.Tensor, share: float = 0.4) -> torch.Tensor:
    """Labels of which a share is ignored."""
    chance = torch.Generator().manual_seed(9)
    return labels.masked_fill(torch.rand(labels.shape, generator=chance) < share, -100)


def gradients(model: Any, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """By parameter, after `loss` went back; the model's own are cleared."""
    loss.backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float = 1e-5) -> None:
    """The same gradients of the same parameters, and not all of them zero."""
    assert one.keys() == other.keys()
    assert any(grad.abs().max() > 100 * tolerance for grad in one.values())
    for name, grad in one.items():
        torch.testing.assert_close(grad, other[name], rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}")
