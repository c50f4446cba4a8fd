"""Runs of the tiny model on two ranks: what comes out, what is written, how it is stopped and goes on."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.trainer import tiny
from tests.trainer.launch import Done, Site
from trainer import checkpoint
from trainer.durable import file_digest
from trainer.telemetry import METRICS

pytestmark = pytest.mark.train
DROPOUT = {"type": "lora", "lora_dropout": 0.05}


def weights(here: Site, kind: str, name: str) -> str:
    return file_digest(next((here.root / "models" / kind / name).glob("*.safetensors")))


@pytest.fixture(scope="module")
def plain(here: Site) -> Done:
    """A run that nobody touches: ddp, adapters with dropout, merged."""
    return here.train(here.run_file("plain", engine="ddp", method={**DROPOUT, "merge": True}, eval_steps=4))


def test_a_run_succeeds_and_seals_what_it_came_to(here: Site, plain: Done) -> None:
    assert plain.status == 0, plain.text[-3000:]
    found = plain.result
    assert (found["status"], found["step"], found["verdict"], found["problems"]) == ("succeeded", 6, "", [])
    assert found["proof"]["engine"] == "ddp"
    assert found["proof"]["world"] == 2
    assert found["metrics"]["eval_loss"] > 0
    assert found["metrics"]["best_step"] in (4, 6)
    assert set(plain.losses) == set(range(1, 7))
    losses = [float.fromhex(text) for text in plain.losses.values()]
    assert losses[-1] < losses[0]


def test_every_checkpoint_is_whole_and_says_what_it_is(here: Site, plain: Done) -> None:
    root = here.checkpoints("plain")
    assert checkpoint.steps(root) == [6, 4, 2]
    assert (root / "latest").readlink() == Path("checkpoint-6")
    found = checkpoint.read_seal(root / "latest")
    assert isinstance(found, checkpoint.Sealed)
    assert checkpoint.faults(found) == []
    assert found.about["world"] == 2
    assert {
        "optimizer.pt",
        "scheduler.pt",
        "trainer_state.json",
        "rng_state_0.pth",
        "rng_state_1.pth",
        "adapter_model.safetensors",
    } < set(found.files)
    assert {"tokenizer.json", "chat_template.jinja"} < set(found.files)


def test_the_adapter_the_merged_model_and_a_card_are_published(here: Site, plain: Done) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    adapter, merged = here.root / "models/lora/plain", here.root / "models/merged/plain"
    assert plain.result["output"] == str(adapter)
    base = AutoModelForCausalLM.from_pretrained(here.root / "models/base/tiny")
    whole = PeftModel.from_pretrained(base, str(adapter))
    other = AutoModelForCausalLM.from_pretrained(merged)
    words = tiny.tokenizer()("red green", return_tensors="pt").input_ids
    assert (whole(words).logits - other(words).logits).abs().max() < 1e-4
    card = (adapter / "README.md").read_text()
    assert "| base model digest | " in card
    assert "| engine | ddp on 2 ranks of CPU |" in card
    assert not (adapter / "training_args.bin").exists()
    assert not list((here.root / "models").rglob(".*"))


def test_what_was_measured_is_written(here: Site, plain: Done) -> None:
    logs = here.logs("plain")
    entries = [json.loads(line) for line in (logs / "metrics.jsonl").read_text().splitlines()]
    step = next(entry for entry in entries if entry["step"] == 3)
    assert {"loss", "grad_norm", "learning_rate", "epoch", "tokens_per_second", "step_seconds", "data_wait_seconds"} <= set(step)
    assert "ceiling_share" not in step  # a CPU has none that is known
    assert "gpu_memory_bytes" not in step
    assert list((logs / "tensorboard").glob("events.*"))
    for rank in (0, 1):
        beat = json.loads((logs / f"heartbeat-rank-{rank}.json").read_text())
        assert (beat["rank"], beat["step"], beat["doing"]) == (rank, 6, "ending")
        assert "begins: attempt 0" in (logs / f"rank-{rank}.log").read_text()
    assert "learning_rate = 0.001  (plain.yaml:" in plain.log
    assert "max_grad_norm = 1.0  (Transformers' default)" in plain.log


def kept_tokens(here: Site) -> dict[str, int]:
    """Folders of tokens, with the time at which each was sealed."""
    return {seal.parent.name: seal.stat().st_mtime_ns for seal in (here.root / "datasets" / "tokenized").glob("*/seal.json")}


def test_tokens_are_made_once_for_each_content(here: Site, plain: Done) -> None:
    before = kept_tokens(here)
    assert len(before) >= 2, "training and validation"
    for made in (here.root / "cache").rglob("cache-*.arrow"):  # what TRL's own steps left behind: it would do them again
        made.unlink()
    again = here.train(here.run_file("tokens-again", engine="ddp", method={**DROPOUT, "merge": True}, eval_steps=4))
    assert again.losses == plain.losses
    assert kept_tokens(here) == before
    assert list((here.root / "cache").rglob("cache-*.arrow")) == []
    shorter = here.train(here.run_file("tokens-shorter", engine="ddp", max_length=32, max_steps=1))
    assert shorter.status == 0, shorter.text[-2000:]
    assert len(kept_tokens(here)) == len(before) + 2


def test_tokens_that_were_altered_are_not_trained_on(here: Site, plain: Done) -> None:
    values: dict[str, Any] = {"engine": "ddp", "max_length": 48, "max_steps": 1}
    before = kept_tokens(here)
    assert here.train(here.run_file("tokens-made", **values)).status == 0
    for name in kept_tokens(here).keys() - before.keys():
        with next((here.root / "datasets" / "tokenized" / name).glob("*.arrow")).open("r+b") as file:
            file.seek(-9, 2)
            file.write(b"!")
    done = here.train(here.run_file("tokens-altered", **values))
    assert done.status != 0
    assert (done.result["status"], done.result["verdict"], done.result["step"]) == ("refused", "storage", 0)
    assert "data-00000-of-00001.arrow was altered" in done.result["problems"][0]
    assert "remove the folder" in done.result["problems"][-1]
    assert "Traceback" not in (here.logs("tokens-altered") / "rank-0.log").read_text()


@pytest.mark.parametrize("how", ["file", "SIGUSR1"])
def test_a_run_that_is_asked_to_stop_saves_and_goes_on_to_the_same_bits(here: Site, plain: Done, how: str) -> None:
    name = f"stopped-{how.lower()}"
    run = here.run_file(name, engine="ddp", method=DROPOUT, save_steps=100, logging_steps=1)
    text = here.until(run, lambda: here.logged(name) >= 2, how=how)
    first = Done(here, name, 0, text)
    found = first.result
    assert found["status"] == "preempted", text[-2000:]
    assert 2 <= found["step"] < 6
    assert found["checkpoint"] == str(here.checkpoints(name) / f"checkpoint-{found['step']}")
    assert not (here.checkpoints(name) / "stop").exists()
    done = here.train(run)
    assert done.status == 0, done.text[-2000:]
    assert f"resumes at step {found['step']}" in done.log
    assert done.losses == plain.losses
    assert weights(here, "lora", name) == weights(here, "lora", "plain")


def test_fsdp_is_sharded_and_goes_on_with_one_rank(here: Site) -> None:
    """Killed after its first checkpoint; one rank reads what two wrote."""
    values: dict[str, Any] = {"engine": "fsdp", "method": "full"}
    whole = here.train(here.run_file("fsdp-whole", **values))
    assert whole.status == 0, whole.text[-2000:]
    held = whole.result["proof"]["held"]
    assert sum(held) == whole.result["proof"]["whole"]
    assert max(held) / sum(held) < 0.51
    run = here.run_file("fsdp-killed", **values)
    assert here.until(run, (here.checkpoints("fsdp-killed") / "latest").exists) == ""  # it is sealed beside training
    done = here.train(run, 1)
    assert done.status == 0, done.text[-2000:]
    assert "it was saved by 2 ranks, here are 1" in done.log
    pairs = [(float.fromhex(done.losses[step]), float.fromhex(loss)) for step, loss in whole.losses.items()]
    assert all(abs(a - b) < 1e-4 * abs(b) for a, b in pairs), pairs


def test_zero3_is_partitioned_and_is_refused_on_one_rank(here: Site) -> None:
    run = here.run_file("zero3", engine="deepspeed-zero3", method="full", max_steps=2)
    done = here.train(run)
    assert done.status == 0, done.text[-2000:]
    proof = done.result["proof"]
    assert all(abs(held / proof["whole"] - 0.5) < 0.02 for held in proof["held"])
    refused = here.train(run, 1)
    assert refused.status != 0
    found = refused.result
    assert (found["status"], found["verdict"]) == ("refused", "code")
    assert "saved by 2 ranks of deepspeed-zero3, here are 1" in found["problems"][0]
    assert "ds_to_universal" in found["problems"][0]


def test_a_second_run_of_the_name_is_refused_while_the_first_is_at_work(here: Site) -> None:
    run = here.run_file("twice", engine="ddp", max_steps=5000, save_steps=5)
    second: list[Done] = []

    def both() -> bool:
        if here.logged("twice") >= 1:
            second.append(here.train(run, 1))
        return bool(second)

    assert here.until(run, both, 1) == ""
    assert second[0].status != 0
    assert "another run writes its checkpoints there" in second[0].log
    assert not (here.checkpoints("twice") / "result.json").exists()  # it is the first one's to write


def test_a_rank_that_fails_alone_says_why(here: Site) -> None:
    """The second rank cannot write its heartbeat; the first sees only that it is gone."""
    name = "one-fails"
    (here.logs(name) / "heartbeat-rank-1.json").mkdir(parents=True)
    done = here.train(here.run_file(name, engine="ddp"))
    assert done.status != 0
    found = done.result
    assert found["status"] == "failed"
    assert found["problems"][0].startswith("rank-1: IsADirectoryError: "), found
    assert "Traceback" in (here.logs(name) / "rank-1.log").read_text()


NAN = [
    # what the run file says of nan -> status, verdict
    ("stop", "failed", "diverged"),
    ("skip", "succeeded", ""),
    ("warn", "failed", "diverged"),
]


@pytest.fixture(scope="module")
def poisoned(here: Site) -> Path:
    """A model whose losses are no numbers."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = shutil.copytree(here.root / "models/base/tiny", here.root / "models/base/poisoned")
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = float("nan")
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("reaction", "status", "verdict"), NAN, ids=[case[0] for case in NAN])
def test_a_loss_that_is_no_number(here: Site, poisoned: Path, reaction: str, status: str, verdict: str) -> None:
    """stop: at once. skip: no update, so what is published is finite. warn: goes on, but nothing broken is sealed or published."""
    name = f"nan-{reaction}"
    run = here.run_file(
        name, model=str(poisoned), engine="ddp", method="lora", max_steps=3, save_steps=1, detectors={"nan": reaction}
    )
    done = here.train(run, 1)
    found = done.result
    assert (found["status"], found["verdict"]) == (status, verdict), done.text[-2000:]
    assert checkpoint.steps(here.checkpoints(name)) == ([3, 2, 1] if reaction == "skip" else [])
    assert (here.root / "models/lora" / name).exists() == (status == "succeeded")
    if reaction == "skip":
        assert found["metrics"]["skipped_steps"] == [1, 2, 3]
    if reaction == "stop":
        assert found["problems"] == ["step 1: the loss is not a finite number (detectors.nan: stop)"]


def free_ports(count: int) -> int:
    """The first of so many free ports; below those that the system gives out, where a call to nobody may reach itself."""
    for first in range(21000, 30000, count):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no port is free")


def test_prometheus_serves_what_a_rank_measures(here: Site) -> None:
    """Scraped while it trains: the values of both ranks, each on its port."""
    port = free_ports(2)
    scraped: dict[int, str] = {}

    def scrape() -> bool:
        for rank in (0, 1):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port + rank}/metrics", timeout=2) as page:
                    text = page.read().decode()
            except OSError:
                continue
            if "reconcile_training_checkpoint_age_seconds{" in text:
                scraped[rank] = text
        return len(scraped) == 2

    run = here.run_file("scraped", engine="ddp", max_steps=2000, save_steps=5)
    assert here.until(run, scrape, 2, "--metrics-port", str(port)) == ""
    for rank, text in scraped.items():
        names = {line.split("{")[0].removeprefix("reconcile_training_") for line in text.splitlines() if line[:1] not in ("#", "")}
        assert names == set(METRICS) - {"gpu_memory_bytes", "ceiling_share"}
        assert f'reconcile_training_global_step{{job="scraped",rank="{rank}"}}' in text
