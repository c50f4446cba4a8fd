"""Everything at once, on TRL's trainers: packed SFT and DPO have the losses that TRL has by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from tests.trainer.speed.models import made, masked, tokens
from tests.trainer.speed.test_loss import tokenizer
from trainer import attention, speed
from trainer.loss import FusedLossTrainer

pytestmark = pytest.mark.train
COMMON: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "per_device_train_batch_size": 2,
    "max_steps": 3,
    "learning_rate": 1e-2,
    "logging_steps": 1,
    "report_to": "none",
    "disable_tqdm": True,
    "save_strategy": "no",
    "max_length": 32,
}


def losses(trainer: Any) -> list[float]:
    trainer.train()
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


def sft(kind: type[Any], folder: Path, **more: Any) -> Any:
    rows = [tokens(1, length, length)[0] for length in (20, 9, 14, 31, 8, 25, 12, 17, 22, 10, 11, 28, 2, 3)]
    data = Dataset.from_dict({"input_ids": [r.tolist() for r in rows], "labels": [masked(r).tolist() for r in rows]})
    config = SFTConfig(str(folder), **COMMON, packing=True, **more)
    return kind(made("Qwen2", "lora"), config, train_dataset=data, processing_class=tokenizer())


@pytest.mark.parametrize("constant", [True, False], ids=["one shape", "as they come"])
def test_packed_sft_has_the_losses_of_trl_with_a_mask(constant: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "installed", lambda package: True)  # on a CPU the kernel is not called
    more = speed.arguments("cpu", packing=True, compile_layers=constant, batch=2, max_length=32)
    assert more["pad_to_multiple_of"] == (64 if constant else None)
    del more["packing"]
    ours = sft(FusedLossTrainer, tmp_path / "ours", **more)
    done = speed.apply(ours, method="lora", engine="ddp", device="cuda", compile_layers=False)
    assert [choice["value"] for choice in done.resolved().values()] == [False, True, True]
    assert ours.model.config._attn_implementation == attention.NAME
    assert losses(ours) == pytest.approx(losses(sft(SFTTrainer, tmp_path / "trl")), abs=1e-4)


def dpo(folder: Path) -> Any:
    words = [" ".join(str(number) for number in tokens(1, length, length)[0].tolist()) for length in range(3, 15)]
    data = Dataset.from_dict({"prompt": words, "chosen": words[::-1], "rejected": words[3:] + words[:3]})
    return DPOTrainer(
        made("Qwen2", "lora"), args=DPOConfig(str(folder), **COMMON), train_dataset=data, processing_class=tokenizer()
    )


def test_dpo_keeps_the_head_of_trl_and_has_its_losses(tmp_path: Path) -> None:
    ours = dpo(tmp_path / "ours")
    done = speed.apply(ours, method="lora", engine="ddp", device="cuda", compile_layers=False)
    assert (done.fused_loss.value, done.maskless_attention.value) == (False, True)
    assert "log-probability of each token" in done.fused_loss.why
    assert losses(ours) == pytest.approx(losses(dpo(tmp_path / "trl")), abs=1e-5)


def test_without_the_kernel_the_loss_is_left_to_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "installed", lambda package: package != "liger_kernel")
    trainer = sft(FusedLossTrainer, tmp_path)
    done = speed.apply(trainer, method="lora", engine="ddp", device="cuda", compile_layers=False)
    assert done.fused_loss == speed.Choice(False, "liger-kernel is not in this environment: TRL's own head")
    assert len(losses(trainer)) == 3


def test_on_a_cpu_nothing_is_done_and_that_is_said(tmp_path: Path) -> None:
    trainer = sft(FusedLossTrainer, tmp_path)
    trainer.args.packing = False
    done = speed.apply(trainer, method="lora", engine="ddp", device="cpu")
    assert {choice["why"] for choice in done.resolved().values()} == {speed.CPU}
    assert trainer.model.config._attn_implementation == "sdpa"
