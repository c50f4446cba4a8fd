"""What decides without a model: detectors, memory, floating-point operations, verdicts, the trainer's environment."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tools import train_env
from trainer import memory
from trainer.detectors import STALL, WINDOW, Watch
from trainer.flops import Work, ceiling
from trainer.memory import GIB, Load, Shape
from trainer.spec import Ddp, DeepSpeed, Fsdp
from trainer.stop import Stop
from trainer.verdicts import verdict

# Qwen2.5-1.5B and 7B, from their config.json; the head of the first is its embedding
SMALL = Shape(1_543_714_304, 1_543_714_304, 28, 1536, 8960, 256, 151_936)
LARGE = Shape(7_615_616_512, 7_615_616_512, 28, 3584, 18_944, 512, 152_064)


def watch(losses: list[float]) -> list[tuple[int, str]]:
    seen = Watch()
    return [(step, found.detector) for step, loss in enumerate(losses) if (found := seen.see(step, loss))]


FALLING = [3.0 - 0.004 * step for step in range(400)]
NOISY = [2.0 + 0.2 * ((step * 7919) % 13 - 6) / 6 - 0.002 * step for step in range(400)]
LOSSES = [
    ("falling", FALLING, []),
    ("noisy and falling", NOISY, []),
    ("not a number", [*FALLING[:30], float("nan"), *FALLING[31:40]], [(30, "nan")]),
    ("infinite", [float("inf")], [(0, "nan")]),
    ("a spike", [*FALLING[:100], 9.0, *FALLING[100:150]], [(100, "loss-spike")]),
    (
        "two spikes, the first is not learnt from",
        [*FALLING[:50], 9.0, 9.0, *FALLING[50:60]],
        [(50, "loss-spike"), (51, "loss-spike")],
    ),
    ("high at the start, too early to judge", [*[9.0 - step / 3 for step in range(WINDOW - 1)], *FALLING[:20]], []),
    ("no lower for long", [1.0] * STALL, [(STALL - 1, "stalled-loss")]),
    ("said once a stretch", [1.0] * (2 * STALL - 1), [(STALL - 1, "stalled-loss")]),
]


@pytest.mark.parametrize(("losses", "expected"), [case[1:] for case in LOSSES], ids=[case[0] for case in LOSSES])
def test_detectors(losses: list[float], expected: list[tuple[int, str]]) -> None:
    assert watch(losses) == expected


def load(**more: object) -> Load:
    plain = Load(Ddp(), 1, 4, 4096, 2, lora=False, checkpointing=False)
    return replace(plain, **more)  # type: ignore[arg-type]


def test_full_under_ddp_is_eight_bytes_a_parameter_in_bf16() -> None:
    found = memory.estimate(SMALL, load())
    assert found.weights + found.gradients + found.optimizer == pytest.approx(8 * SMALL.parameters)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (Fsdp(type="fsdp"), 16 / 8),
        (DeepSpeed(type="deepspeed-zero3"), 20 / 8),
        (DeepSpeed(type="deepspeed-zero2"), 2 + 16 / 8),
    ],
)
def test_sharding_divides_by_the_ranks(engine: Fsdp | DeepSpeed, expected: float) -> None:
    found = memory.estimate(SMALL, load(engine=engine, world=8))
    gathered = 0 if engine.type == "deepspeed-zero2" else 2 * SMALL.parameters / SMALL.layers * 2
    states = found.weights + found.gradients + found.optimizer - gathered
    assert states / SMALL.parameters == pytest.approx(expected, rel=0.01)


def test_checkpointing_keeps_less_and_offloading_nothing() -> None:
    plain, checked = memory.estimate(SMALL, load()), memory.estimate(SMALL, load(checkpointing=True))
    assert checked.activations < plain.activations / 5
    offload = DeepSpeed(type="deepspeed-zero3", offload_optimizer="cpu", offload_param="cpu")
    assert memory.estimate(SMALL, load(engine=offload, world=2)).optimizer == 0


def test_advice_is_tried_before_it_is_given() -> None:
    asked = load(batch=16)
    card = 80 * GIB
    assert not memory.estimate(SMALL, asked).fits(card)
    words = memory.advice(SMALL, asked, card)
    assert words[0] == "gradient_checkpointing: true"
    assert memory.estimate(SMALL, replace(asked, checkpointing=True)).fits(card)
    assert "per_device_train_batch_size: 8" not in words[0]
    assert memory.advice(LARGE, load(batch=1, length=1), 2 * GIB) == [
        "more GPUs with engine: fsdp or deepspeed-zero3, or a smaller model"
    ]


def test_useful_operations_are_counted_as_papers_do() -> None:
    """The figures that 25,546 and 37,706 tokens/s of the plain loops were stated with: 176 and 389 TFLOP/s."""
    lora, full = (Work(SMALL.parameters, 28, 1536, lora) for lora in (True, False))
    assert 25_546 * lora.a_token(4096) / 1e12 == pytest.approx(176, abs=0.6)
    assert 37_706 * full.a_token(4096) / 1e12 == pytest.approx(389, abs=0.6)


@pytest.mark.parametrize(
    ("name", "rate"),
    [("NVIDIA A100-SXM4-80GB", 312.0), ("NVIDIA H200", 989.4), ("NVIDIA L40S", 362.0), ("NVIDIA L4", 121.0), ("CPU", None)],
)
def test_a_card_that_is_not_known_has_no_ceiling(name: str, rate: float | None) -> None:
    assert ceiling(name) == rate


class OutOfMemoryError(RuntimeError):
    """As torch names it."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OutOfMemoryError("x"), "out-of-memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "storage"),
        (OSError(errno.ENOENT, "x"), "code"),
        (RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer"), "network"),
        (ValueError("x"), "code"),
    ],
)
def test_verdicts(error: Exception, expected: str) -> None:
    assert verdict(error) == expected


def test_a_stop_file_asks_until_it_is_taken_away(tmp_path: Path) -> None:
    stop = Stop(tmp_path / "stop")
    assert stop.asked == ""
    stop.file.touch()
    assert stop.asked == "the file stop"
    stop.done()
    assert stop.asked == ""


def test_a_lock_names_torch_without_the_build_that_was_found_here() -> None:
    listed = "torch==2.13.0+cpu\npip==24.0\nnumpy==2.4.6\nsetuptools==84.2.1\n-e git+ssh://x#egg=y\n"
    assert train_env.frozen(listed).splitlines()[1:] == ["numpy==2.4.6", "torch==2.13.0"]


def test_an_environment_has_the_name_of_its_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train_env.name("# a\nx==1\n") == train_env.name("x==1\n") != train_env.name("x==2\n")
    monkeypatch.setenv("RECONCILE_TRAIN_CACHE", str(tmp_path))
    lock = tmp_path / "lock.txt"
    lock.write_text("x==1\n")
    built: list[Path] = []

    def install(folder: Path, requirements: Path) -> None:
        folder.mkdir()
        built.append(folder)

    monkeypatch.setattr(train_env, "install", install)
    assert train_env.ensure(lock) == train_env.ensure(lock) == built[0]
    assert len(built) == 1
    (built[0] / train_env.READY).unlink()  # as after a build that was cut off
    built[0].rmdir()
    train_env.ensure(lock)
    assert len(built) == 2


def test_the_lock_holds_what_is_wanted() -> None:
    pins = dict(line.replace("_", "-").lower().split("==") for line in train_env.LOCK.read_text().splitlines() if "==" in line)
    wanted = [line for line in train_env.WANTED.read_text().splitlines() if line and not line.startswith("#")]
    for line in wanted:
        name, _, version = line.lower().partition("==")
        assert name in pins, name
        assert version in ("", pins[name]), line
