"""SFTTrainer with the head and its cross-entropy in one kernel: Liger's, which never holds the logits of all tokens.

TRL 1.16's own head computes log-probabilities that many objectives can use: it takes the logits twice (forward and backward) and
their entropy as well, and waits for the device four times a step. Next-token loss needs less: Liger's kernel makes the gradient
together with the loss, from logits that it takes once. Everything else of `SFTTrainer` is as it is, and what is no plain
next-token loss is left to it: `loss_type: dft`, label smoothing, `compute_loss_func`, outputs that somebody asked for, DPO (it
needs each token's log-probability).
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, pad
from transformers.modeling_outputs import ModelOutput
from trl import SFTTrainer

IGNORED = -100
# Logits held at a time, in multiples of the hidden states. By hand on an H200: 319 ms a step with 1, 313 with 16 (1.5B LoRA).
CHUNKS = 16
# What some models do to their logits after the head, as TRL 1.16's `add_fused_lm_head` lists it: none of it is in the kernel.
SCALES = ("final_logit_softcapping", "logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")


@dataclass
class LossOutput(ModelOutput):  # type: ignore[misc]
    """Of a forward pass with `fused_loss=True`: the losses summed, in fp32; tokens that it sums; tokens predicted right."""

    loss_sum: Tensor | None = None
    counted: Tensor | None = None
    correct: Tensor | None = None


def unfit(model: Any) -> str:
    """Why a causal language model's loss cannot be fused; empty where it can."""
    config = model.config.get_text_config()
    found = [f"{name} {getattr(config, name)}" for name in SCALES if getattr(config, name, None) not in (None, 1, 1.0)]
    if getattr(config, "output_router_logits", False):
        found.append("experts with a loss of their own")
    head = model.get_output_embeddings()
    if type(head) is not torch.nn.Linear:
        found.append(f"a head of {type(head).__name__}")
    return ", ".join(found)


def add_fused_loss(model: Any) -> None:
    """Let `model(..., labels=labels, fused_loss=True)` return a LossOutput; without `fused_loss` its forward pass is what it was.

    `model` is the causal language model itself, not PEFT's wrapper of it. Raises ValueError where it is unfit.
    """
    if why := unfit(model):
        raise ValueError(f"the loss of {type(model).__name__} cannot be fused: {why}")
    before = model.forward

    @functools.wraps(type(model).forward)  # generate() checks its arguments against the signature
    def forward(self: Any, *args: Any, fused_loss: bool = False, **kwargs: Any) -> Any:
        if not fused_loss:
            return before(*args, **kwargs)
        labels, items = kwargs.pop("labels"), kwargs.pop("num_items_in_batch", None)
        del items  # the caller divides
        hidden = self.base_model(*args, **{**kwargs, "use_cache": False}).last_hidden_state
        head = self.get_output_embeddings()  # looked up in each call: FSDP replaces its weight
        return LossOutput(*linear_cross_entropy(hidden, _whole(head.weight), _whole(head.bias), labels))

    model.forward = types.MethodType(forward, model)


def _whole(weight: Any) -> Any:
    """A sharded weight (DTensor) gathered once; anything else as it is."""
    return weight.full_tensor() if hasattr(weight, "full_tensor") else weight


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Loss of predicting each next token, summed; tokens counted; tokens predicted right: three scalars on the device.

    `hidden` (rows, tokens, size), `weight` (vocabulary, size), `labels` (rows, tokens) as they stand under their tokens, -100
    ignored. Only tokens with a label go through the head. Without any, the loss is 0 and its gradients are zeros.
    """
    shifted = pad(labels, (0, 1), value=IGNORED)[:, 1:].flatten()
    where = (shifted != IGNORED).nonzero().flatten()
    states, targets = hidden.flatten(0, 1).index_select(0, where), shifted.index_select(0, where)
    counted = torch.tensor(len(where), device=hidden.device)
    if len(where) == 0:
        return states.float().sum() + weight.float().sum() * 0.0, counted, counted.clone()
    if hidden.is_cuda:
        total, correct = _liger(states, weight, bias, targets)
    else:
        total, correct = _plain(states, weight, bias, targets)
    return total, counted, correct


def _plain(states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    logits = linear(states, weight, bias).float()
    return cross_entropy(logits, targets, reduction="sum"), (logits.detach().argmax(-1) == targets).sum()


def _liger(states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

    # the kernel's matmuls do not know autocast
    kind = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else weight.dtype
    bias = None if bias is None else bias.to(kind)
    out = liger_fused_linear_cross_entropy(
        states.to(kind),
        weight.to(kind),
        targets,
        bias,
        reduction="sum",
        accum_dtype=torch.float32,
        return_token_accuracy=True,
        chunk_mem_const=CHUNKS,
    )
    return out.loss, (out.token_accuracy * len(targets)).round().long()


class FusedLossTrainer(SFTTrainer):  # type: ignore[misc]
    """SFTTrainer until `fuse_loss()`; from then on its loss is fused, and its metrics stay on the device until they are logged."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fused = False
        self._counts: dict[str, list[Tensor]] = defaultdict(list)
        self._operations_a_token: float | None = None

    def fuse_loss(self) -> bool:
        """Fuse it, once, before training; False where the loss is no plain next-token loss. Raises as `add_fused_loss`."""
        plain = self.args.loss_type == "nll" and not self.args.label_smoothing_factor and self.compute_loss_func is None
        if plain and not self._fused:
            add_fused_loss(self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model)
            self._fused = True
        return self._fused

    def floating_point_ops(self, inputs: Any) -> float:
        """As Trainer's, which counts all parameters of the model again for each batch: that is done once."""
        tokens = int(inputs["input_ids"].numel())
        if self._operations_a_token is None:
            self._operations_a_token = super().floating_point_ops(inputs) / tokens
        return self._operations_a_token * tokens

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
        """As SFTTrainer's: the mean over tokens with a label, of all ranks and accumulated batches where Trainer counted them."""
        if not self._fused or return_outputs:
            return super().compute_loss(model, inputs, return_outputs=return_outputs, num_items_in_batch=num_items_in_batch)
        outputs = model(**inputs, use_cache=False, fused_loss=True)
        items = (
            outputs.counted if num_items_in_batch is None else torch.as_tensor(num_items_in_batch, device=outputs.counted.device)
        )
        loss = outputs.loss_sum / items.clamp(min=1)
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * (self.accelerator.num_processes // self.get_tp_size())  # the count is of all ranks, DDP takes their mean
        seen = (
            inputs["attention_mask"].sum()
            if "attention_mask" in inputs
            else torch.full_like(outputs.counted, inputs["input_ids"].numel())
        )
        mode = "train" if self.model.training else "eval"
        self._counts[mode].append(torch.stack([outputs.counted, outputs.correct, seen.to(outputs.counted.dtype)]))
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As SFTTrainer's: accuracy and tokens seen since the last time, over all ranks. It computes no entropy."""
        mode = "train" if self.model.training else "eval"
        if counts := self._counts.pop(mode, None):
            counted, correct, seen = self.accelerator.gather(torch.stack(counts).sum(0)[None]).sum(0).tolist()
            self._total_train_tokens += seen // self._tp_size if mode == "train" else 0
            self._metrics[mode]["mean_token_accuracy"].append(correct / counted if counted else 0.0)
            self._metrics[mode]["num_tokens"] = [self._total_train_tokens]
        super().log(logs, start_time)
