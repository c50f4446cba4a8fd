"""Causal attention for training that never builds a mask: for rows padded on the right, and for packed rows without contamination.

A mask of a packed row of 16,384 tokens has 2^28 entries for each head's scores to be added to; no kernel that takes one is fast.
None is needed. Where a row is padded on the right, no token looks at the padding behind it, and the padding's own outputs have no
label. Where sequences are packed, each attends within itself: on a GPU by torch's varlen kernel (torch 2.11 or newer), elsewhere
by one call of SDPA a sequence.
"""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

NAME = "reconcile_causal"  # as `attn_implementation`; transformers makes no mask for a name without a mask function
FEWEST_SLOTS = 32


def unfit(config: Any) -> str:
    """Why a model cannot be trained with this attention; empty where it can."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        return f"layers with {', '.join(sorted(kinds - {'full_attention'}))}"
    if getattr(config, "attention_dropout", 0.0):
        return f"attention_dropout {config.attention_dropout}"
    if getattr(config, "is_encoder_decoder", False):
        return "an encoder"
    return ""


def enable(model: Any, longest: int | None = None, *, padded_right: bool = False) -> None:
    """Let `model`, a causal language model of transformers with or without PEFT around it, attend by this module from now on.

    `longest` is the most tokens of one sequence, the whole row by default. `padded_right` is the promise of who makes the
    batches: it saves a look at each mask, for which the CPU would have to wait until the GPU has done the step before. The
    forward pass then raises ValueError for a mask that is not right-padded, for a longer sequence, and for a cache: generation
    needs another `attn_implementation`. Raises ValueError where the model is unfit.
    """
    from transformers import AttentionInterface

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if why := unfit(base.config):
        raise ValueError(f"{type(base).__name__} cannot attend without a mask: {why}")
    if base.config._attn_implementation == NAME:  # a second training with the same model
        return
    AttentionInterface.register(NAME, attend)
    base.set_attn_implementation(NAME)
    base.get_decoder().register_forward_pre_hook(_Boundaries(longest, padded_right), with_kwargs=True)


class _Boundaries:
    """Before the decoder runs: where sequences begin, from `position_ids`, in the names that flash attention has for it."""

    def __init__(self, longest: int | None, padded_right: bool) -> None:
        self._longest, self._promised = longest, padded_right

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        mask, positions = kwargs.get("attention_mask"), kwargs.get("position_ids")
        if mask is not None and not self._promised and not right_padded(mask):
            raise ValueError(f"attention {NAME} takes rows padded on the right only, and this batch has padding before a token")
        if positions is None:
            return args, kwargs
        longest = self._longest or positions.shape[-1]
        edges = boundaries(positions, longest)
        if (most := int(edges.diff().max())) > longest:  # the kernel would leave the rest out
            raise ValueError(f"a packed sequence has {most} tokens; attention {NAME} was enabled for {longest} at most")
        found = {"cu_seq_lens_q": edges, "cu_seq_lens_k": edges, "max_length_q": longest, "max_length_k": longest}
        return args, {**kwargs, **found}


def right_padded(mask: Tensor) -> bool:
    """Whether no row of a 2-D mask (rows, tokens) has a token behind padding."""
    return mask.dim() == 2 and bool((mask[:, 1:] <= mask[:, :-1]).all())


def boundaries(positions: Tensor, longest: int) -> Tensor:
    """Where sequences begin in the flattened rows, and the end: int32, padded with the end to a power of two.

    `positions` (rows, tokens) begin again at 0 with each sequence, and each row begins one. Sequences of one token that follow
    each other count as one, of at most `longest` tokens: none of them has a label to predict, and the padding of a packed row,
    which is all zeros, would be thousands. Lengths of powers of two keep the number of compiled variants small.
    """
    begins = positions == 0
    begins[:, 0] = True
    lonely = begins & torch.cat([begins[:, 1:], begins.new_ones(begins.shape[0], 1)], dim=1)
    cut = torch.arange(positions.shape[-1], device=positions.device) % longest == 0
    begins[:, 1:] &= ~(lonely[:, 1:] & lonely[:, :-1]) | cut[1:]
    starts = begins.flatten().nonzero().flatten()
    slots = max(FEWEST_SLOTS, 1 << len(starts).bit_length())
    edges = starts.new_full((slots + 1,), positions.numel(), dtype=torch.int32)
    edges[: len(starts)] = starts
    return edges


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of transformers' interface: queries (rows, heads, tokens, size), keys and values with as many or fewer heads.

    Returns (rows, tokens, heads, size). `cu_seq_lens_q` and `max_length_q` among the arguments make it packed.
    """
    if query.shape[2] != key.shape[2]:
        sizes = f"{query.shape[2]} queries over {key.shape[2]} keys"
        raise ValueError(
            f"attention {NAME} is for training, not for {sizes} of a cache: set another attn_implementation to generate"
        )
    edges = kwargs.get("cu_seq_lens_q")
    if edges is None:
        return _causal(query, key, value, scaling).transpose(1, 2).contiguous(), None
    q, k, v = (tensor.transpose(1, 2).flatten(0, 1) for tensor in (query, key, value))
    out = _varlen(q, k, v, edges, kwargs["max_length_q"], scaling) if query.is_cuda else _each(q, k, v, edges, scaling)
    return out.unflatten(0, (query.shape[0], query.shape[2])), None


def _causal(query: Tensor, key: Tensor, value: Tensor, scaling: float | None) -> Tensor:
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling, enable_gqa=grouped)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _each(query: Tensor, key: Tensor, value: Tensor, edges: Tensor, scaling: float | None) -> Tensor:
    """Flat tensors (tokens, heads, size), one sequence after another."""
    found, points = [], edges.tolist()
    for begin, end in itertools.pairwise(points):
        if begin < end:
            q, k, v = (tensor[begin:end].transpose(0, 1).unsqueeze(0) for tensor in (query, key, value))
            found.append(_causal(q, k, v, scaling).squeeze(0).transpose(0, 1))
    return torch.cat(found)


def _varlen(query: Tensor, key: Tensor, value: Tensor, edges: Tensor, longest: int, scaling: float | None) -> Tensor:
    from torch.nn.attention import varlen

    # grouped heads have to be allowed in newer versions; older ones hand them to the kernel, which takes them
    grouped = {"enable_gqa": True} if "enable_gqa" in _VARLEN_TAKES else {}
    causal = {"window_size": (-1, 0)} if "window_size" in _VARLEN_TAKES else {"is_causal": True}
    return varlen.varlen_attn(query, key, value, edges, edges, longest, longest, scale=scaling, **causal, **grouped)


def _takes() -> frozenset[str]:
    try:
        from torch.nn.attention import varlen
    except ImportError:
        return frozenset()
    return frozenset(inspect.signature(varlen.varlen_attn).parameters)


_VARLEN_TAKES = _takes()
