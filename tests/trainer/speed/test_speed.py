"""What is chosen for which run, and that a prepared model computes what it did."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from trl import SFTConfig
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from tests.trainer.speed.models import MIXTURE, assert_same, base, causal, gradients, made, masked, tokens
from trainer import attention, speed
from trainer.loss import add_fused_loss

pytestmark = pytest.mark.train

RUN: dict[str, Any] = {"device": "cuda", "objective": "sft", "engine": "ddp", "packing": False}
# what differs from RUN -> compiled layers, fused loss, attention without a mask
CHOICES: list[tuple[dict[str, Any], tuple[bool, bool, bool]]] = [
    ({}, (True, True, True)),
    ({"packing": True}, (True, True, True)),
    ({"objective": "dpo"}, (True, False, True)),
    ({"engine": "fsdp"}, (True, True, True)),
    ({"engine": "deepspeed-zero2"}, (True, True, True)),
    ({"engine": "deepspeed-zero3"}, (False, False, True)),
    ({"engine": "deepspeed-zero3", "compile_layers": True}, (False, False, True)),
    ({"compile_layers": False}, (False, True, True)),
    ({"device": "cpu"}, (False, False, False)),
    ({"device": "cpu", "packing": True}, (False, False, True)),
    ({"device": "cpu", "compile_layers": True}, (True, False, False)),
]


@pytest.mark.parametrize(("more", "expected"), CHOICES, ids=[" ".join(f"{k}={v}" for k, v in more.items()) for more, _ in CHOICES])
def test_what_is_chosen_with_its_reason(more: dict[str, Any], expected: tuple[bool, ...]) -> None:
    told = speed.choose(**{**RUN, **more}).resolved()
    assert tuple(choice["value"] for choice in told.values()) == expected
    assert all(choice["why"] for choice in told.values())


@pytest.mark.parametrize(
    ("family", "more", "without"),
    [
        ("Qwen2", {}, set()),
        ("Gemma2", {}, {"fused_loss", "maskless_attention"}),
        ("Cohere", {}, {"fused_loss"}),
        ("Llama", {"attention_dropout": 0.1}, {"maskless_attention"}),
        ("Mixtral", {**MIXTURE, "output_router_logits": True}, {"fused_loss"}),
    ],
)
def test_a_model_gets_what_it_can_have(family: str, more: dict[str, Any], without: set[str]) -> None:
    wanted = speed.choose(**RUN)
    told = speed.fitted(wanted, causal(family, **more)).resolved()
    assert {name for name, choice in told.items() if not choice["value"]} == without
    assert all(family in told[name]["why"] for name in without)


@pytest.mark.parametrize(
    ("made_for", "asked", "why"),
    [("full", "lora", "all of its weights would be trained"), ("lora", "full", "some of its weights are frozen")],
)
def test_a_model_that_is_trained_otherwise_is_refused(made_for: str, asked: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"not ready for {asked}: {why}"):
        speed.prepare(made("Qwen2", made_for), method=asked, device="cpu", compile_layers=False)


def test_frozen_adapters_are_refused() -> None:
    model = made("Qwen2", "lora")
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="it has no adapter to train"):
        speed.prepare(model, method="lora", device="cpu", compile_layers=False)


def test_layers_without_a_compiler_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="no g"):
        speed.prepare(made("Qwen2", "full"), method="full", device="cpu", compile_layers=True)


@pytest.mark.parametrize("method", ["lora", "full"])
def test_on_a_cpu_prepared_is_plain(method: str) -> None:
    model, rows = made("Qwen2", method), tokens(2, 9)
    before = model(input_ids=rows, labels=rows).loss
    expected = gradients(model, before)
    assert speed.prepare(model, method=method, device="cpu", compile_layers=False) is model
    after = model(input_ids=rows, labels=rows).loss
    assert torch.equal(before, after)
    assert_same(gradients(model, after), expected)


def test_compiled_layers_compute_the_same_and_keep_their_names(tmp_path: Path) -> None:
    """Everything at once, packed, with labels that are ignored; compiled on the CPU as it would be on a GPU."""
    torch._dynamo.reset()
    rows = tokens(1, 24)
    positions = torch.cat([torch.arange(10), torch.arange(14)])[None]
    labels = masked(rows).masked_fill(positions == 0, -100)
    model = made("Qwen2", "lora")
    attention.enable(model, 14)
    add_fused_loss(base(model))
    plain = model(input_ids=rows, position_ids=positions, labels=labels, fused_loss=True).loss_sum
    expected, names = gradients(model, plain), list(model.state_dict())
    speed.prepare(model, method="lora", device="cpu", compile_layers=True)
    layers = list(speed.decoder_layers(model))
    assert [type(layer).__name__ for layer in layers] == ["Qwen2DecoderLayer"] * 2
    assert all(layer._compiled_call_impl is not None for layer in layers)
    compiled = model(input_ids=rows, position_ids=positions, labels=labels, fused_loss=True).loss_sum
    torch.testing.assert_close(compiled, plain, rtol=1e-5, atol=1e-5)
    assert_same(gradients(model, compiled), expected, 1e-4)
    assert list(model.state_dict()) == names
    model.save_pretrained(tmp_path)
    assert all("_orig_mod" not in name for name in load_file(tmp_path / "adapter_model.safetensors"))


def test_a_prepared_model_is_saved_as_what_it_was(tmp_path: Path) -> None:
    model = made("Qwen2", "full")
    before = model.config.to_dict()
    attention.enable(model, 16)
    attention.enable(model, 16)  # by a second training: it stays enabled once
    assert len(model.get_decoder()._forward_pre_hooks) == 1
    speed.prepare(model, method="full", device="cpu", compile_layers=True)
    assert model.config.to_dict() == before
    model.save_pretrained(tmp_path)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


def test_a_model_without_layers_is_not_compiled_in_silence() -> None:
    model = causal("Llama")
    model._no_split_modules = []
    with pytest.raises(ValueError, match="names no decoder layers"):
        speed.prepare(model, method="full", device="cpu", compile_layers=True)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("packing", [True, False])
def test_the_arguments_are_those_of_trl(device: str, packing: bool, tmp_path: Path) -> None:
    found = speed.arguments(device, packing=packing, compile_layers=True, batch=2, max_length=64)
    config = SFTConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, max_length=64, **found)
    assert config.accelerator_config.non_blocking is (device == "cuda")
    # memory is never pinned where a CPU was asked for
    expected = {**found, "accelerator_config": config.accelerator_config, "dataloader_pin_memory": False}
    assert {name: getattr(config, name) for name in found} == {name: expected[name] for name in found}


@pytest.mark.parametrize("length", [3, 11])
def test_the_collator_that_is_trusted_pads_on_the_right(length: int) -> None:
    collator = DataCollatorForLanguageModeling(pad_token_id=0, pad_to_multiple_of=8)
    rows = [{"input_ids": [5] * length}, {"input_ids": [6] * 7}]
    assert speed.pads_right(collator)
    assert attention.right_padded(collator(rows)["attention_mask"])


def test_another_collator_is_not_trusted() -> None:
    class Other(DataCollatorForLanguageModeling):  # type: ignore[misc]
        pass

    assert not speed.pads_right(Other(pad_token_id=0))


def test_packed_batches_of_compiled_layers_have_one_shape() -> None:
    sizes = {"packing": True, "batch": 4, "max_length": 256}
    assert speed.arguments("cuda", compile_layers=True, **sizes)["pad_to_multiple_of"] == 1024  # type: ignore[arg-type]
    assert speed.arguments("cpu", compile_layers=False, **sizes)["pad_to_multiple_of"] is None  # type: ignore[arg-type]
    unpacked = speed.arguments("cuda", packing=False, compile_layers=True, batch=4, max_length=256)
    assert "packing" not in unpacked
    assert unpacked["gradient_checkpointing"] is False
