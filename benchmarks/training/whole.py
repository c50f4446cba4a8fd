"""The trainer as its users start it, on all GPUs of a host: `python -m benchmarks.training.whole --out DIR [--model 1.5b]`.

torchrun -m trainer.train on a random model of the shape, data and tokenizer made on the spot: LoRA under ddp, full under fsdp and
under ddp. Told are the rate that a run itself logs, for how long each checkpoint held training up and after how long it was
sealed, the proof of its engine, and how far a run that is killed and goes on is from an unbroken one. --model tiny with --ranks is
for a CPU (STAND-IN).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.baselines.plain import LENGTH
from benchmarks.baselines.shapes import SHAPES
from tests.trainer import launch, tiny

EVERY = 100  # steps between two checkpoints, as the target for the stall says
RUNS = ("lora", "full", "full-ddp", "killed")
WARM = 10  # logged steps that are not counted: layers compile in the first


def model(folder: Path, shape: Mapping[str, Any]) -> None:
    """Random weights in bf16, with a tokenizer that is smaller than the vocabulary."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    words = tiny.tokenizer()
    torch.manual_seed(0)
    ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        made = AutoModelForCausalLM.from_config(Qwen2Config(**{**shape, **ids}), dtype=torch.bfloat16)
    made.save_pretrained(folder)
    words.save_pretrained(folder)


def rows(path: Path, count: int, length: int) -> None:
    """Answers that fill the length: a word is a token, and each row is cut at the length."""
    draw = random.Random(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            said = " ".join(draw.choice(tiny.WORDS[:12]) for _ in range(length))
            file.write(json.dumps({"instruction": "go on", "input": "", "output": said}) + "\n")


def argv(root: Path, run: str, ranks: int) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [*launcher, "-m", "trainer.train", str(root / f"{run}.yaml"), "--data-root", str(root)]


def logged(root: Path, run: str) -> list[dict[str, Any]]:
    path = root / "logs" / "training" / run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def losses(root: Path, run: str) -> dict[int, str]:
    logs = root / "logs" / "training" / run
    return tiny.losses(logs) if (logs / "metrics.jsonl").exists() else {}


def started(root: Path, run: str, ranks: int) -> subprocess.Popen[str]:
    return subprocess.Popen(argv(root, run, ranks), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def trained(root: Path, run: str, ranks: int, limit: float) -> dict[str, Any]:
    """A run to its end: what its own records say."""
    began = time.monotonic()
    process = started(root, run, ranks)
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:  # told by its exit status
        launch.kill(process.pid)
        said, _ = process.communicate()
    wall = time.monotonic() - began
    outcome = root / "checkpoints" / run / "result.json"
    found: dict[str, Any] = {"run": run, "exit": process.returncode, "seconds": round(wall, 1)}
    if not outcome.exists():
        return {**found, "said": said[-3000:]}
    result = json.loads(outcome.read_text())
    entries = [e for e in logged(root, run) if "loss_hex" in e]
    # what is compiled, and the memory that is taken for copies of checkpoints, is in the first ones
    found["first_steps"] = [round(e["step_seconds"], 3) for e in entries[:WARM] if "step_seconds" in e]
    entries = entries[WARM:]
    steps = [e["step_seconds"] for e in entries if "step_seconds" in e]
    rates = [e["tokens_per_second"] for e in entries if "tokens_per_second" in e]
    log = (root / "logs" / "training" / run / "train.log").read_text()
    saved = re.findall(r"saved checkpoint-\d+: held up ([0-9.]+) s, sealed in ([0-9.]+) s", log)
    stalls = [float(held) for held, _ in saved]
    found |= {"result": result, "metrics": entries[-1] if entries else {}, "stalls": stalls, "sealed": [float(s) for _, s in saved]}
    if steps and rates:
        found |= {"step_seconds": statistics.median(steps), "tokens_per_second": statistics.median(rates)}
        found["each_step"] = [round(seconds, 3) for seconds in steps]
    if steps and stalls:  # of the first, which takes the memory for its copies, and the largest of the others
        found["stall_shares"] = [held / (EVERY * statistics.median(steps)) for held in (stalls[0], max(stalls[1:], default=0.0))]
        saves = [int(step) for step in re.findall(r"saved checkpoint-(\d+)", log)]
        found["slowed"] = [slowed(entries, *pair, statistics.median(steps)) for pair in pairwise([*saves, entries[-1]["step"]])]
    return found


def slowed(entries: list[dict[str, Any]], after: int, until: int, usual: float) -> float:
    """Seconds that steps took longer than usual, from one save to the next one: what is done beside training is not free."""
    return float(sum(e["step_seconds"] - usual for e in entries if after < e["step"] <= until and "step_seconds" in e))


def killed(root: Path, run: str, at: int, ranks: int, limit: float) -> dict[str, Any]:
    """A run killed once it has logged step `at`, and started again: from where it went on."""
    process = started(root, run, ranks)
    until = time.monotonic() + limit
    while process.poll() is None and time.monotonic() < until and max([*losses(root, run), 0]) < at:
        time.sleep(0.2)  # its file is all that it tells
    if process.poll() is None:
        launch.kill(process.pid)
    process.communicate()
    before = max([*losses(root, run), 0])
    again = trained(root, run, ranks, limit)
    return {"killed_after": before, "again": {k: again.get(k) for k in ("exit", "seconds", "said")}}


def compared(one: dict[int, str], other: dict[int, str]) -> dict[str, Any]:
    """How far the losses of the same steps are apart."""
    both = sorted(set(one) & set(other))
    apart = [abs(float.fromhex(one[s]) - float.fromhex(other[s])) for s in both]
    return {"steps": len(both), "equal": sum(a == 0 for a in apart), "largest": max(apart, default=None)}


def measurements(root: Path, asked: argparse.Namespace, ranks: int) -> Iterator[tuple[str, Any]]:
    """What was asked for, one after another; `killed` is held against `lora`."""
    small, limit = asked.model == "tiny", asked.limit
    length, steps, every, batch = (64, 24, 12, 2) if small else (LENGTH, 2 * EVERY, EVERY, 4)
    model(root / "model", SHAPES[asked.model].config())
    rows(root / "datasets" / "long.jsonl", (steps + 10) * batch * ranks, length)
    common = {
        "model": str(root / "model"),
        "dataset": "long.jsonl",
        "validation_split": 0,
        "max_length": length,
        "logging_steps": 1,
        "per_device_train_batch_size": batch,
        "gradient_accumulation_steps": 1,
        "max_steps": steps,
        "save_steps": every,
        "save_total_limit": 1,  # a full one of the larger models has tens of GB
    }
    runs: dict[str, dict[str, Any]] = {
        "lora": {"method": "lora"},
        "full": {"method": "full", "engine": "fsdp"},
        "full-ddp": {"method": "full", "engine": "ddp"},
        "killed": {"method": "lora"},
    }
    for run in asked.runs:
        tiny.run_file(root / f"{run}.yaml", **{**common, **runs[run]})
        if run == "killed":
            yield run, killed(root, run, every + every // 2, ranks, limit)
            yield "resumed", compared(losses(root, "lora"), losses(root, run))
        else:
            yield run, trained(root, run, ranks, limit)
        shutil.rmtree(root / "checkpoints" / run, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(SHAPES), default="1.5b")
    parser.add_argument("--ranks", type=int, help="default: a rank a GPU")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=RUNS, help="which, in this order")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds of one run")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "CPU"
    ranks = asked.ranks or torch.cuda.device_count()
    told: dict[str, Any] = {"device": device, "ranks": ranks, "model": asked.model}
    with tempfile.TemporaryDirectory() as folder:
        for name, found in measurements(Path(folder), asked, ranks):
            told[name] = found
            short = {key: value for key, value in found.items() if key not in ("result", "each_step")}
            print(name, json.dumps(short, default=str)[:1500], flush=True)
            (asked.out / f"whole-{asked.model}.json").write_text(json.dumps(told, indent=1, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
