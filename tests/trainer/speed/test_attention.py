"""Attention without a mask: packed sequences see only themselves, padding changes nothing, and what it cannot do it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.trainer.speed.models import assert_same, base, causal, config, gradients, made, tokens
from trainer import attention
from trainer.loss import add_fused_loss

pytestmark = pytest.mark.train

SLOTS = attention.FEWEST_SLOTS
# positions of each row -> where sequences begin, without the ends that fill up
CASES = [
    ([[0, 1, 2, 3]], [0]),
    ([[0, 1, 2, 0, 1]], [0, 3]),
    ([[0, 1], [0, 1]], [0, 2]),
    ([[3, 4, 0, 1]], [0, 2]),  # a row that goes on where another was cut begins a sequence nevertheless
    ([[0, 1, 2, 0, 0, 0, 0]], [0, 3]),  # padding counts once
    ([[0, 0, 1, 2]], [0, 1]),
    ([[0, 1, 0, 0, 1, 2]], [0, 2, 3]),
    ([[0, 0, 0, 0, 1]], [0, 3]),
    ([[0, 1, 0], [0, 1, 2]], [0, 2, 3]),
]


@pytest.mark.parametrize(("positions", "starts"), CASES, ids=[str(rows) for rows, _ in CASES])
def test_where_sequences_begin(positions: list[list[int]], starts: list[int]) -> None:
    rows = torch.tensor(positions)
    end = rows.numel()
    assert attention.boundaries(rows, 99).tolist() == starts + [end] * (SLOTS + 1 - len(starts))


def test_padding_is_cut_to_what_the_kernel_was_told() -> None:
    positions = torch.tensor([[0, 1, 2, *[0] * 9]])
    assert attention.boundaries(positions, 4).tolist()[:5] == [0, 3, 4, 8, 12]


def test_many_sequences_get_a_power_of_two_of_slots() -> None:
    positions = torch.arange(2).repeat(SLOTS)[None]
    edges = attention.boundaries(positions, 99)
    assert len(edges) == 2 * SLOTS + 1
    assert edges[: SLOTS + 1].tolist() == list(range(0, 2 * SLOTS + 1, 2))


def packed(lengths: list[int], padding: int = 0) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Sequences, and the one row that holds them as TRL's collator makes it."""
    parts = [tokens(1, length, seed) for seed, length in enumerate(lengths)]
    rows = torch.cat([*parts, torch.zeros(1, padding, dtype=torch.long)], 1)
    positions = torch.cat([*map(torch.arange, lengths), torch.zeros(padding, dtype=torch.long)])[None]
    return parts, {"input_ids": rows, "position_ids": positions, "labels": rows.masked_fill(positions == 0, -100)}


@pytest.mark.parametrize("method", ["lora", "full"])
@pytest.mark.parametrize("padding", [0, 11])
@pytest.mark.parametrize("lengths", [[9, 14, 5], [2, 2, 30], [1, 7, 1, 1, 3]], ids=str)
def test_packed_sequences_have_the_loss_and_gradients_of_single_ones(method: str, padding: int, lengths: list[int]) -> None:
    parts, row = packed(lengths, padding)
    model = made("Qwen2", method)
    single = [model(input_ids=part, labels=part) for part in parts if part.shape[1] > 1]
    weights = [part.shape[1] - 1 for part in parts if part.shape[1] > 1]
    alone = sum(weight * out.loss for weight, out in zip(weights, single, strict=True)) / sum(weights)
    expected = gradients(model, alone)
    attention.enable(model, max(lengths))
    add_fused_loss(base(model))
    out = model(**row, fused_loss=True)
    assert int(out.counted) == sum(weights)
    torch.testing.assert_close(out.loss_sum / out.counted, alone, rtol=1e-6, atol=1e-6)
    assert_same(gradients(model, out.loss_sum / out.counted), expected)


def test_a_neighbour_changes_nothing() -> None:
    parts, row = packed([9, 14, 5])
    model = causal("Llama").eval()
    attention.enable(model)
    before = model(input_ids=row["input_ids"], position_ids=row["position_ids"]).logits
    changed = torch.cat([parts[0].flip(1), parts[1], parts[2]], 1)
    after = model(input_ids=changed, position_ids=row["position_ids"]).logits
    assert torch.equal(before[:, 9:], after[:, 9:])
    assert not torch.equal(before[:, :9], after[:, :9])


@pytest.mark.parametrize("family", ["Qwen2", "Llama"])
def test_padding_on_the_right_needs_no_mask(family: str) -> None:
    rows = tokens(3, 12)
    mask = torch.arange(12) < torch.tensor([[12], [5], [9]])
    labels = rows.masked_fill(~mask, -100)
    model = made(family, "full")
    plain = model(input_ids=rows, attention_mask=mask.long(), labels=labels).loss
    expected = gradients(model, plain)
    attention.enable(model)
    found = model(input_ids=rows, attention_mask=mask.long(), labels=labels).loss
    torch.testing.assert_close(found, plain, rtol=1e-6, atol=1e-6)
    assert_same(gradients(model, found), expected)


def test_no_mask_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def spy(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
        seen.append(attention_mask)
        return attend(module, query, key, value, attention_mask, **kwargs)

    attend = attention.attend
    monkeypatch.setattr(attention, "attend", spy)
    model = causal("Qwen2")
    attention.enable(model)
    model(input_ids=tokens(2, 6), attention_mask=torch.tensor([[1] * 6, [1] * 4 + [0] * 2]))
    model(**packed([4, 3])[1])
    assert seen == [None] * 4  # two layers, twice


@pytest.mark.parametrize("mask", [[[0, 1, 1], [1, 1, 1]], [[1, 0, 1], [1, 1, 1]]], ids=["left", "between"])
def test_padding_before_a_token_is_refused(mask: list[list[int]]) -> None:
    model = causal("Qwen2")
    attention.enable(model)
    with pytest.raises(ValueError, match="has padding before a token"):
        model(input_ids=tokens(2, 3), attention_mask=torch.tensor(mask))


def test_a_sequence_longer_than_said_is_refused() -> None:
    model = causal("Qwen2")
    attention.enable(model, 8)
    with pytest.raises(ValueError, match="a packed sequence has 9 tokens"):
        model(**packed([9, 4])[1])


def test_generation_with_a_cache_is_refused() -> None:
    model = causal("Qwen2").eval()
    attention.enable(model)
    with pytest.raises(ValueError, match="1 queries over 5 keys of a cache: set another attn_implementation"):
        model.generate(tokens(1, 4), max_new_tokens=3, do_sample=False)


@pytest.mark.parametrize(
    ("family", "more", "why"),
    [
        ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}, "layers with sliding_attention"),
        ("Gemma2", {}, "layers with sliding_attention"),
        ("Llama", {"attention_dropout": 0.1}, "attention_dropout 0.1"),
    ],
)
def test_a_model_that_needs_more_is_refused(family: str, more: dict[str, Any], why: str) -> None:
    assert attention.unfit(config(family, **more)) == why
    with pytest.raises(ValueError, match=why):
        attention.enable(causal(family, **more))


@pytest.mark.parametrize("version", ["window_size, enable_gqa", "window_size", "is_causal"])
def test_the_kernel_of_each_torch_is_asked_for_causal_attention(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU a stand-in answers for the kernel of a GPU: what it is asked for is what counts here."""
    from torch.nn.attention import varlen

    asked: dict[str, Any] = {}

    def kernel(q: Any, k: Any, v: Any, edges_q: Any, edges_k: Any, most_q: int, most_k: int, **kwargs: Any) -> Any:
        asked.update(kwargs, most=(most_q, most_k), same=edges_q is edges_k)
        return attention._each(q, k, v, edges_q, kwargs["scale"])

    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    monkeypatch.setattr(attention, "_VARLEN_TAKES", frozenset(version.split(", ")))
    q, k = torch.randn(7, 4, 8), torch.randn(7, 2, 8)
    out = attention._varlen(q, k, k, torch.tensor([0, 3, 7], dtype=torch.int32), 4, 0.5)
    assert out.shape == (7, 4, 8)
    causal_word = {"window_size": (-1, 0)} if "window_size" in version else {"is_causal": True}
    grouped = {"enable_gqa": True} if "enable_gqa" in version else {}
    assert asked == {"scale": 0.5, "most": (4, 4), "same": True, **causal_word, **grouped}
