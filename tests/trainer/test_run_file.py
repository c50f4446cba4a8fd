"""Run files: what is said of a wrong one, with its place; and what a right one means."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer import run_file
from trainer.errors import Refused
from trainer.spec import Fsdp, Lora, RunConfig, batch_problem

GOOD = "model: /models/m\ndataset: d.jsonl\n"

# what is added to a good file -> every problem that is said, in order
WRONG = [
    ("learningRate: 1e-5", ["run.yaml:3:1: unknown key 'learningRate'; did you mean 'learning_rate'?"]),
    (
        "max_seq_length: 8192",
        ["run.yaml:3:1: unknown key 'max_seq_length'; TRL calls it max_length (renamed in 0.16"],
    ),
    (
        "maxSeqLength: 8192",
        ["run.yaml:3:1: unknown key 'maxSeqLength'; TRL calls it max_length (renamed in 0.16"],
    ),
    ("lr: 1", ["run.yaml:3:1: unknown key 'lr'; say learning_rate"]),
    (
        "warmup_ratio: 0.1",
        ["run.yaml:3:1: unknown key 'warmup_ratio'; Transformers 5 has only warmup_steps: a value below 1"],
    ),
    ("method: {type: full, r: 16}", ["run.yaml:3:22: 'r' is an option of lora, not of full"]),
    ("objective: {type: sft, beta: 0.1}", ["run.yaml:3:24: 'beta' is an option of dpo, not of sft"]),
    (
        "engine: zero3",
        ["engine: 'zero3' is not one of ddp, fsdp, deepspeed-zero2, deepspeed-zero3; did you mean 'deepspeed-zero3'?"],
    ),
    ("engine: {type: ddp, cpu_offload: true}", ["run.yaml:3:21: 'cpu_offload' is an option of fsdp, not of ddp"]),
    ("r: 8", ["run.yaml:3:1: unknown key 'r'; it is an option: write method: {type: lora, r: ...}"]),
    ("gradient_checkpointing: yes", ["run.yaml:3:25: gradient_checkpointing: 'yes' is not a boolean: write true or false"]),
    ('bf16: "true"', ["run.yaml:3:7: bf16: 'true' stands in quotes, so it is text: write true"]),
    (
        "gradient_accumulation_steps: 8\neffective_batch_size: 128",
        ["run.yaml:4:1: gradient_accumulation_steps and effective_batch_size are both given: keep one"],
    ),
    ("bf16: true\nfp16: true", ["run.yaml:4:1: bf16 and fp16 are both given: keep one"]),
    ("max_steps: 3\nnum_train_epochs: 1", ["run.yaml:3:1: num_train_epochs and max_steps are both given: keep one"]),
    ("extra: {seed: 1}", ["run.yaml:3:9: 'seed' is a field of the run file itself: say it there"]),
    (
        "detectors: {nans: stop}",
        ["run.yaml:3:13: detectors.nans: 'nans' is not one of nan, loss-spike, stalled-loss; did you mean 'nan'?"],
    ),
    ("detectors: {nan: halt}", ["run.yaml:3:18: detectors.nan: 'halt' is not one of warn, stop, skip"]),
    ("max_length: 0", ["run.yaml:3:13: max_length: 0 is not greater than 0"]),
    ("learning_rate: 5", ["run.yaml:3:16: learning_rate: 5 is not less than 1"]),
    ("seed: 1.5", ["run.yaml:3:7: seed: '1.5' is not a whole number"]),
    ("weight_decay: nan", ["run.yaml:3:15: weight_decay: 'nan' is not a finite number"]),
    (
        "method: {type: lora, target_modules: q_proj}",
        ["run.yaml:3:38: method.target_modules: 'q_proj': write all-linear, or a list of module names such as [q_proj, v_proj]"],
    ),
    ("seed: 1\nseed: 2", ["run.yaml:4:1: key 'seed' is given twice, first on line 3"]),
    ("seed: &a 1", ["run.yaml:3:7: YAML anchors (&name, *name) are not allowed in a run file: write the value out"]),
    ("seed: !!int 1", ["run.yaml:3:7: YAML tags (!name) are not allowed in a run file: write the value out"]),
    ("validation_dataset: v\nvalidation_split: 0.1", ["keep one"]),
    (
        "engine: {type: deepspeed-zero2, offload_param: cpu}",
        ["offload_param is an option of deepspeed-zero3, not of deepspeed-zero2"],
    ),
    ("what: [", ["run.yaml:4:1: not YAML"]),
]


def said(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refused) as caught:
        run_file.load(path)
    return [str(problem) for problem in caught.value.problems]


def load(tmp_path: Path, text: str) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return run_file.load(path)[0]


@pytest.mark.parametrize(("added", "expected"), WRONG, ids=[added[:40] for added, _ in WRONG])
def test_a_mistake_is_said_with_its_place(tmp_path: Path, added: str, expected: list[str]) -> None:
    found = said(tmp_path, f"{GOOD}{added}\n")
    assert len(found) == len(expected)
    assert all(want in line for want, line in zip(expected, found, strict=True)), found


def test_all_mistakes_are_said_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = said(tmp_path, "dataset: d\nlearningRate: 1\nengine: zero3\nmax_length: -1\nbf16: on\n")
    assert [line.split(":")[1] for line in found] == ["1", "2", "3", "4", "5"]
    assert found[0] == "run.yaml:1:1: 'model' is missing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a run file is a mapping"),
        ("- a", "a run file is a mapping"),
        ("model: models/m\ndataset: d\n", "'models/m' is not an absolute path"),
        ("model: Qwen2.5-7B-Instruct@1\ndataset: d\n", "the registry gives the path"),
    ],
)
def test_a_file_that_says_too_little(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in said(tmp_path, text)[0]


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read: No such file"):
        run_file.load(tmp_path / "none.yaml")
    (tmp_path / "run.yaml").write_bytes(b"model: \xff\n")
    with pytest.raises(Refused, match="is not UTF-8: byte 7 is 0xff"):
        run_file.load(tmp_path / "run.yaml")


def test_two_a_device_on_sixteen_gpus_with_eight_steps_are_256(tmp_path: Path) -> None:
    run = load(tmp_path, f"{GOOD}per_device_train_batch_size: 2\neffective_batch_size: 256\n")
    assert run.accumulation(16) == 8
    assert run.batch(16) == 256
    other = load(tmp_path, f"{GOOD}per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n")
    assert other.batch(16) == 256


@pytest.mark.parametrize(
    ("batch", "world", "expected"),
    [(256, 16, ""), (250, 16, "250 is not a multiple of 2 a device x 16 GPUs = 32; nearest: 224 or 256"), (1, 1, "nearest: 2")],
)
def test_a_batch_that_cannot_be_had_names_the_nearest(tmp_path: Path, batch: int, world: int, expected: str) -> None:
    run = load(tmp_path, f"{GOOD}per_device_train_batch_size: 2\neffective_batch_size: {batch}\n")
    found = batch_problem(run, world)
    assert found.endswith(expected)
    assert bool(found) == bool(expected)


def test_the_defaults_are_the_site_s(tmp_path: Path) -> None:
    run = load(tmp_path, GOOD)
    assert isinstance(run.method, Lora)
    assert (run.method.r, run.method.alpha, run.method.target_modules) == (16, 32, "all-linear")
    assert (run.per_device_train_batch_size, run.max_length, run.save_total_limit) == (1, 4096, 3)
    assert run.engine_spec.type == "ddp"
    assert isinstance(load(tmp_path, f"{GOOD}method: full\n").engine_spec, Fsdp)
    assert [run.reaction(name) for name in ("nan", "loss-spike", "stalled-loss")] == ["stop", "warn", "warn"]


def test_what_was_typed_is_what_is_meant(tmp_path: Path) -> None:
    """Other loaders make a text of 1e-4 and a boolean of no."""
    run = load(tmp_path, f"{GOOD}learning_rate: 1e-4\nvalidation_dataset: no\nmax_grad_norm: 1\nmax_steps: null\n")
    assert (run.learning_rate, run.validation_dataset, run.max_grad_norm, run.max_steps) == (1e-4, "no", 1.0, None)
