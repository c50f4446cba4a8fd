"""The fused loss is the plain one: same loss, same gradients, for several families, labels ignored or not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer
from trl.trainer.utils import add_fused_lm_head

from tests.trainer.speed.models import MIXTURE, assert_same, base, causal, gradients, made, masked, tokens
from trainer.loss import IGNORED, SCALES, FusedLossTrainer, add_fused_loss, linear_cross_entropy, unfit

pytestmark = pytest.mark.train

FAMILIES = ("Qwen2", "Qwen3", "Llama", "Mistral")
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "Gemma2": ({}, "final_logit_softcapping 30.0"),
    "Cohere": ({}, "logit_scale 0.0625"),
    "Granite": ({"logits_scaling": 8.0}, "logits_scaling 8.0"),
    "Mixtral": ({**MIXTURE, "output_router_logits": True}, "experts"),
}


@pytest.mark.parametrize("method", ["lora", "full"])
@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_are_those_of_the_model_itself(family: str, method: str) -> None:
    model = made(family, method)
    rows = tokens(3, 17)
    labels = masked(rows)
    plain = model(input_ids=rows, labels=labels).loss
    expected = gradients(model, plain)
    add_fused_loss(base(model))
    out = model(input_ids=rows, labels=labels, fused_loss=True)
    assert int(out.counted) == int((labels[:, 1:] != IGNORED).sum())
    torch.testing.assert_close(out.loss_sum / out.counted, plain, rtol=1e-6, atol=1e-6)
    assert_same(gradients(model, out.loss_sum / out.counted), expected)


def test_what_is_counted_as_right_is_what_the_logits_say() -> None:
    model = causal("Qwen2")
    rows = tokens(2, 30)
    predicted = model(input_ids=rows).logits[:, :-1].argmax(-1)
    labels = rows.clone()
    labels[:, 1:16] = predicted[:, :15]
    add_fused_loss(model)
    right = int(model(input_ids=rows, labels=labels, fused_loss=True).correct)
    assert right == int((predicted == labels[:, 1:]).sum()) >= 30


def test_without_the_word_the_model_is_what_it_was() -> None:
    model, rows = causal("Llama"), tokens(1, 8)
    before, names = model(input_ids=rows).logits, inspect.signature(model.forward).parameters
    add_fused_loss(model)
    assert torch.equal(model(input_ids=rows).logits, before)
    assert list(inspect.signature(model.forward).parameters) == list(names)  # generate() looks at them
    assert model.generate(rows, max_new_tokens=2, do_sample=False).shape == (1, 10)


@pytest.mark.parametrize("family", UNFIT)
def test_a_model_that_does_more_than_a_head_is_refused(family: str) -> None:
    more, why = UNFIT[family]
    model = causal(family, **more)
    assert why in unfit(model)
    with pytest.raises(ValueError, match=re.escape(why)):
        add_fused_loss(model)


def test_no_scale_of_logits_that_trl_knows_is_missed() -> None:
    """TRL's head looks at these fields of a configuration; one more in a later version would be a model that we get wrong."""
    looked_at = set(re.findall(r'getattr\(text_config, "(\w+)"', inspect.getsource(add_fused_lm_head)))
    assert looked_at == {*SCALES, "output_router_logits", "router_aux_loss_coef"}


def test_labels_that_are_all_ignored_give_a_loss_and_gradients_of_zero() -> None:
    hidden, weight = torch.randn(1, 5, 8, requires_grad=True), torch.randn(11, 8, requires_grad=True)
    total, counted, correct = linear_cross_entropy(hidden, weight, None, torch.full((1, 5), IGNORED))
    total.backward()
    assert (total.item(), int(counted), int(correct)) == (0.0, 0, 0)
    assert hidden.grad is not None
    assert weight.grad is not None
    assert (float(hidden.grad.abs().sum()), float(weight.grad.abs().sum())) == (0.0, 0.0)


def tokenizer() -> Any:
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def train(
    kind: type[Any], folder: Path, rows: dict[str, Any], more: dict[str, Any], **about: Any
) -> tuple[Any, list[dict[str, Any]]]:
    arguments = SFTConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=3,
        learning_rate=1e-2,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        gradient_checkpointing=False,
        **more,
    )
    data = Dataset.from_dict(rows)
    trainer = kind(made("Qwen2", "lora"), arguments, train_dataset=data, processing_class=tokenizer())
    if kind is FusedLossTrainer:
        trainer.fuse_loss()
    trainer.train()
    return trainer, [line for line in trainer.state.log_history if "loss" in line]


def data(share: float = 0.4) -> dict[str, list[list[int]]]:
    """Rows of several lengths with labels, as a prepared set has them."""
    rows = [tokens(1, length, length)[0] for length in (20, 9, 14, 31, 8, 25, 12, 17, 22, 10, 11, 28)]
    return {"input_ids": [row.tolist() for row in rows], "labels": [masked(row, share).tolist() for row in rows]}


def test_a_run_has_the_losses_and_metrics_of_trl(tmp_path: Path) -> None:
    ours, fused = train(FusedLossTrainer, tmp_path / "ours", data(), {})
    theirs, plain = train(SFTTrainer, tmp_path / "trl", data(), {})
    assert ours.fuse_loss()
    assert ours.state.total_flos == theirs.state.total_flos > 0
    assert len(fused) == len(plain) == 3
    for mine, other in zip(fused, plain, strict=True):
        assert mine["loss"] == pytest.approx(other["loss"], abs=1e-4)
        assert mine["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-3)
        assert mine["mean_token_accuracy"] == pytest.approx(other["mean_token_accuracy"], abs=0.05)
        assert mine["num_tokens"] == other["num_tokens"]
    assert "entropy" in plain[0]
    assert "entropy" not in fused[0]


@pytest.mark.parametrize("more", [{"loss_type": "dft"}, {"label_smoothing_factor": 0.1}], ids=["dft", "smoothing"])
def test_another_objective_is_left_to_trl(tmp_path: Path, more: dict[str, Any]) -> None:
    ours, fused = train(FusedLossTrainer, tmp_path / "ours", data(), more)
    _, plain = train(SFTTrainer, tmp_path / "trl", data(), more)
    assert not ours.fuse_loss()
    assert [line["loss"] for line in fused] == [line["loss"] for line in plain]


def test_evaluation_has_the_loss_of_trl(tmp_path: Path) -> None:
    found = []
    for kind in (FusedLossTrainer, SFTTrainer):
        trainer, _ = train(kind, tmp_path, data(), {"per_device_eval_batch_size": 4})
        found.append(trainer.evaluate(Dataset.from_dict(data(0.7))))
    assert found[0]["eval_loss"] == pytest.approx(found[1]["eval_loss"], abs=1e-5)
    assert 0 <= found[0]["eval_mean_token_accuracy"] <= 1
