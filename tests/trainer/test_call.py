"""The command line: what is refused before anything heavy is loaded, and where things go."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tools.sources import ROOT
from trainer import output, result
from trainer.call import parse
from trainer.errors import Refused

WRONG = [
    (["run.yaml", "--name", "Not A Name"], ["--name: 'Not A Name' is not a name: lower-case letters, digits, '-' and '.'"]),
    (["run.yaml", "--world", "-1"], ["--world: -1 is not greater than 0"]),
    (["run.yaml", "--json"], ["--json: goes with --dry-run; a run's outcome is result.json"]),
    (["run.yaml", "--metrics-port", "70000", "--patience", "0"], ["--patience: 0.0 is not", "--metrics-port: 70000 is no port"]),
]


@pytest.mark.parametrize(("words", "expected"), WRONG, ids=[" ".join(words[1:]) for words, _ in WRONG])
def test_a_call_that_cannot_be_meant_is_refused_with_all_its_problems(words: list[str], expected: list[str]) -> None:
    with pytest.raises(Refused) as caught:
        parse(words)
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_everything_goes_below_the_data_root_by_the_run_s_name() -> None:
    call = parse(["runs/support.yaml"])
    assert call.checkpoints == Path("/data/checkpoints/support")
    assert call.logs == Path("/data/logs/training/support")
    assert call.stop_file == Path("/data/checkpoints/support/stop")
    assert call.output(lora=True) == Path("/data/models/lora/support")
    assert call.output(lora=False) == Path("/data/models/merged/support")
    assert parse(["x.yaml", "--name", "y", "--data-root", "/lustre/ai"]).checkpoints == Path("/lustre/ai/checkpoints/y")


def train(*words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "trainer.train", *words)
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_wrong_file_is_refused_at_once_and_the_launcher_finds_it_in_the_result(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("model: /m\ndataset: d\nlr: 1\nengine: zero3\n")
    done = train(str(tmp_path / "run.yaml"), "--data-root", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "run.yaml:3:1: unknown key 'lr'; say learning_rate"
    assert "Traceback" not in done.stderr
    found = result.read(tmp_path / "checkpoints/run")
    assert found is not None
    assert (found["status"], found["verdict"], found["problems"]) == ("refused", "code", done.stderr.splitlines())


def test_a_data_root_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("model: /m\ndataset: d\n")
    (tmp_path / "root").touch()
    done = train(str(tmp_path / "run.yaml"), "--data-root", str(tmp_path / "root"))
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/root/logs/training/run: logs cannot be written: Not a directory\n"


def test_an_option_that_is_not_there_is_told_by_its_name() -> None:
    done = train("run.yaml", "--learning-rate", "1")
    assert done.returncode == 2
    assert "unrecognized arguments: --learning-rate" in done.stderr


@pytest.mark.parametrize(
    ("torch", "said", "more"),
    [
        ("2.13.0+cu130", {}, ["PYTORCH_ALLOC_CONF"]),
        ("2.13.0", {"PYTORCH_ALLOC_CONF": "x"}, []),
        ("2.13.0", {"PYTORCH_CUDA_ALLOC_CONF": "y"}, []),
        ("2.10.1", {}, []),
        ("3.0.0", {}, []),
    ],
)
def test_the_allocator_is_told_only_what_it_knows_and_where_the_user_says_nothing(
    monkeypatch: pytest.MonkeyPatch, torch: str, said: dict[str, str], more: list[str]
) -> None:
    environment = dict(said)
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(metadata, "version", lambda _: torch)
    output.pinning()
    assert sorted(environment) == sorted([*said, *more])
    assert {name: environment[name] for name in said} == said
