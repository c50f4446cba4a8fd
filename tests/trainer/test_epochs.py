"""Evaluations at the end of epochs: none is lost by a run that is killed and goes on."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.trainer.launch import Site
from trainer import checkpoint

pytestmark = pytest.mark.train


def test_an_epoch_whose_evaluation_was_cut_off_is_evaluated_when_the_run_goes_on(here: Site) -> None:
    """The last checkpoint of an epoch is sealed before that epoch is evaluated: here nothing else is left of the first run."""
    values: dict[str, Any] = {"effective_batch_size": 32, "save_steps": 3, "num_train_epochs": 2, "max_steps": None}
    run = here.run_file("epochs", engine="ddp", **values)
    whole = here.train(run)
    assert whole.status == 0, whole.text[-2000:]
    evaluated = evaluations(here, "epochs")
    assert list(evaluated) == [3, 6]
    root = here.checkpoints("epochs")
    assert checkpoint.steps(root) == [6, 3]
    for left, owed in (([6, 3], [6]), ([3], [3, 6])):
        for step in {6, 3} - set(left):
            shutil.rmtree(checkpoint.named(root, step))
        (here.logs("epochs") / "metrics.jsonl").unlink()
        again = here.train(run)
        assert again.status == 0, again.text[-2000:]
        assert evaluations(here, "epochs") == {step: evaluated[step] for step in owed}
        assert again.result["metrics"]["eval_loss"] == evaluated[6]


def evaluations(here: Site, name: str) -> dict[int, float]:
    entries = [json.loads(line) for line in (here.logs(name) / "metrics.jsonl").read_text().splitlines()]
    return {entry["step"]: entry["eval_loss"] for entry in entries if "eval_loss" in entry}
