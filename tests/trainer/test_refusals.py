"""What cannot be trained is refused before anything is loaded: with its place, what is allowed, and no traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer import tiny
from tests.trainer.launch import Site, environment
from tools.sources import ROOT

pytestmark = pytest.mark.train


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """The libraries keep the standard error that they find first: it has to outlive a test."""
    import trainer.arguments  # noqa: F401


def dry(capsys: pytest.CaptureFixture[str], here: Site, file: Path, *options: str) -> tuple[int, str, str]:
    """A dry run in this process: loading the libraries once is enough."""
    from trainer.train import main

    status = main([str(file), "--data-root", str(here.root), "--dry-run", *options])
    found = capsys.readouterr()
    return status, found.out, found.err


def change_config(folder: Path, name: str = "config.json", **values: Any) -> None:
    config = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**config, **values}))


MODELS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such folder": (shutil.rmtree, "there is no folder"),
    "no config": (lambda m: (m / "config.json").unlink(), "has no config.json: it is no Transformers model"),
    "no weights": (lambda m: (m / "model.safetensors").unlink(), "has no *.safetensors"),
    "no language model": (lambda m: change_config(m, model_type="vit", architectures=["ViTModel"]), "is no causal language model"),
    "unknown type": (lambda m: change_config(m, model_type="qwen9"), "its config.json cannot be used"),
    "no template": (
        lambda m: (m / "chat_template.jinja").unlink(),
        "the tokenizer has no chat template: put a chat_template.jinja beside it",
    ),
    "a tokenizer of another model": (lambda m: change_config(m, vocab_size=128), "tokens, the model 128: they are not a pair"),
    "no end": (lambda m: change_config(m, "tokenizer_config.json", eos_token=None), "has no eos_token"),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_model_that_cannot_be_trained(here: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    change, expected = MODELS[case]
    folder = shutil.copytree(here.root / "models/base/tiny", tmp_path / "m")
    change(folder)
    status, _, errors = dry(capsys, here, here.run_file("bad-model", model=str(folder)))
    assert status == 2
    assert expected in errors
    assert "Traceback" not in errors


def test_a_lora_target_that_matches_nothing_names_what_there_is(here: Site, capsys: pytest.CaptureFixture[str]) -> None:
    run = here.run_file("bad-target", method={"type": "lora", "target_modules": ["q_prj", "v_proj"]})
    status, _, errors = dry(capsys, here, run)
    assert status == 2
    there = "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"
    assert f"'q_prj' matches no linear layer of this model; there are: {there}; did you mean 'q_proj'?" in errors


INSTRUCTION, MESSAGES, PREFERENCE = (tiny.row(kind, random.Random(0)) for kind in ("instruction", "messages", "preference"))
DATA = {
    "nothing there": (None, "instruction", "no such file or folder"),
    "empty": ([], "sft", "has no row: there is nothing to train on"),
    "a broken line": (['{"instruction": "a", "input": "", "output": "b"}', '{"instruction": "a", '], "sft", "data.jsonl:2"),
    "wrong roles": ([{"messages": [{"role": "human", "content": "a"}]}], "sft", "data.jsonl:1"),
    "mixed": ([INSTRUCTION, MESSAGES], "sft", "mixes formats"),
    "preferences for sft": ([PREFERENCE], "sft", "objective sft trains on rows of format instruction or messages"),
    "instructions for dpo": ([INSTRUCTION], "dpo", "objective dpo trains on rows of format preference"),
    "one row": ([INSTRUCTION], "sft", "1 rows cannot be split: say validation_split: 0"),
}


@pytest.mark.parametrize("case", DATA)
def test_data_that_cannot_be_trained_on(here: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    rows, objective, expected = DATA[case]
    path = tmp_path / "data.jsonl"
    if rows is not None:
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    run = here.run_file("bad-data", dataset=str(path), objective=objective if objective != "instruction" else "sft")
    status, _, errors = dry(capsys, here, run)
    assert status == 2
    assert expected in errors
    assert "Traceback" not in errors


def test_model_data_and_values_are_said_together(here: Site, capsys: pytest.CaptureFixture[str]) -> None:
    run = here.run_file(
        "bad-all",
        model="/nowhere/tiny",
        dataset="/nowhere/d.jsonl",
        effective_batch_size=7,
        extra={"adam_beta": "1", "output_dir": "x"},
    )
    status, _, errors = dry(capsys, here, run, "--world", "2")
    assert status == 2
    for part in (
        "there is no folder /nowhere/tiny",
        "/nowhere/d.jsonl",
        "7 is not a multiple of 2 a device x 2 GPUs = 4; nearest: 4 or 8",
        "'adam_beta' is no field of SFTConfig; did you mean 'adam_beta",
        "extra.output_dir is set by the trainer itself: remove it",
    ):
        assert part in errors


VALUES = [
    ({"fp16": True}, "fp16: CPU cannot train in fp16"),
    ({"engine": "deepspeed-zero2", "detectors": {"nan": "skip"}}, "too late to skip: write stop or warn"),
    ({"extra": {"adam_beta2": "often"}}, "extra.adam_beta2: 'often'"),
    ({"extra": {"packing": True}}, "say it as objective: {type: sft, packing: ...}"),
]


@pytest.mark.parametrize(("values", "expected"), VALUES, ids=[said for _, said in VALUES])
def test_values_that_only_the_library_or_the_device_can_judge(
    here: Site, capsys: pytest.CaptureFixture[str], values: dict[str, Any], expected: str
) -> None:
    status, _, errors = dry(capsys, here, here.run_file("bad-value", **values))
    assert status == 2
    assert expected in errors


def test_a_dry_run_says_where_each_value_comes_from(here: Site, capsys: pytest.CaptureFixture[str]) -> None:
    run = here.run_file("dry", learning_rate=None, extra={"adam_beta2": "0.95"})
    status, out, _ = dry(capsys, here, run, "--world", "4", "--json", "--card-gib", "80")
    assert status == 0
    found = json.loads(out)
    origins = {setting["name"]: (setting["value"], setting["origin"]) for setting in found["settings"]}
    assert origins["gradient_accumulation_steps"] == (1, "derived: 8 / (2 x 4)")
    assert origins["learning_rate"][1] == "our default: TRL's 2e-05 x 10 for lora"
    assert origins["adam_beta2"] == (0.95, "dry.yaml:10")
    assert origins["optim"][1] == "Transformers' default"
    assert origins["packing"] == (False, "TRL's default")
    assert origins["gradient_checkpointing"] == (False, "derived: fits without (TRL: true)")
    assert found["parameters"]["trained"] == 32_768
    assert found["parameters"]["adapted_layers"] == 14
    assert found["fits"] is True


def test_what_does_not_fit_is_said_with_what_to_try(here: Site, capsys: pytest.CaptureFixture[str]) -> None:
    run = here.run_file("large", max_length=100_000, per_device_train_batch_size=8)
    status, out, _ = dry(capsys, here, run, "--card-gib", "1.2")
    assert status == 1
    assert "does not fit" in out
    assert "try " in out


def test_a_call_that_is_wrong_is_said_without_a_traceback(here: Site) -> None:
    for words, expected in (
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
        ([str(here.run_file("x")), "--name", "Not A Name"], "'Not A Name' is not a name"),
    ):
        done = here.call(*words, "--data-root", str(here.root), "--dry-run")
        assert done.returncode == 2
        assert expected in done.stderr
        assert "Traceback" not in done.stderr


def test_a_missing_rank_is_named(here: Site) -> None:
    """The second of two ranks never comes."""
    alone = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }
    argv = [
        str(here.python),
        "-m",
        "trainer.train",
        str(here.run_file("missing")),
        "--data-root",
        str(here.root),
        "--patience",
        "2",
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        alone["MASTER_PORT"] = str(free.getsockname()[1])
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, **environment(alone)}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1, done.stdout + done.stderr
    result = json.loads((here.checkpoints("missing") / "result.json").read_text())
    assert result["verdict"] == "network"
    assert result["problems"] == ["rank 1 of 2 did not come within 2 s: is it running, and does it reach the first node?"]
