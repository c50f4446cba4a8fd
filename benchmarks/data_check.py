"""How fast training data are checked, and in how much memory: `python -m benchmarks.data_check` in the trainer's environment.

Speed without tokens: MB of the file a second of CPU, of whole processes, imports and all. Speed with tokens: in one process, in
turns, the bare tokenizer (conversations already rendered, nothing else done) and the whole check; MB of rendered text a second of
wall time, each on all cores. Memory: the largest resident size of a process by size of the file. Writes
benchmarks/results/data_check.json and its page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data_check_page import page
from benchmarks.training_text import Words, write, write_large

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "data_check"
REPEATS, TURNS = 3, 7
VOCABULARY = 32_000
TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
MB = 1e6


@dataclass(frozen=True, slots=True)
class Call:
    """One process: CPU and wall seconds, largest resident MB, rows that it saw."""

    cpu: float
    wall: float
    memory: float
    rows: int


# the child of a small process: the largest resident size of a child of this one begins with what this one has
_LAUNCH = """
import json, os, subprocess, sys, time
began = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
out = process.stdout.read()
_, status, used = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
wall = time.monotonic() - began
print(json.dumps([process.returncode, used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024, out.decode()]))
"""


def call(path: Path, *more: str) -> Call:
    """`python -m trainer.data check PATH --json`, alone in its process."""
    argv = (sys.executable, "-m", "trainer.data", "check", str(path), "--json", *more)
    done = subprocess.run((sys.executable, "-S", "-c", _LAUNCH, *argv), cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    code, cpu, wall, resident, out = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{' '.join(argv)}: exit {code}: {out}")
    return Call(cpu, wall, resident, json.loads(out)["rows"])


def without_tokens(folder: Path, size: int) -> Iterator[dict[str, float]]:
    """A record for each call: three mean sizes of a row, each several times."""
    for words in (30, 120, 500):
        path = folder / f"{words}.jsonl"
        rows = write(path, size, words)
        for _ in range(REPEATS):
            one = call(path)
            yield {"mb": path.stat().st_size / MB, "rows": rows, "cpu": one.cpu, "wall": one.wall}
        path.unlink()


def tokenizer(folder: Path) -> Path:
    """A byte-level BPE tokenizer, made from 20 MB of the same words, saved as a model's folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,
        show_progress=False,
    )
    words = Words(1)
    made.train_from_iterator((words.text(500, number % 2 == 0) for number in range(6_000)), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=special[1])
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder / "tokenizer")
    return folder / "tokenizer"


def with_tokens(folder: Path, size: int) -> Iterator[dict[str, float]]:
    """A record for each turn: the bare tokenizer, then the whole check."""
    from trainer.data import check, tokens
    from trainer.data.read import Malformed, rows
    from trainer.data.report import Asked

    path = folder / "tokens.jsonl"
    write(path, size)
    loaded = tokens.load(tokenizer(folder))
    found = tokens.rendered(loaded, [row.messages for row in rows(path) if not isinstance(row, Malformed)])
    texts = [text for text in found if isinstance(text, str)]
    written = sum(len(text.encode()) for text in texts)
    for _ in range(TURNS):
        bare = took(lambda: _bare(loaded, texts))
        whole = took(lambda: check.check(Asked(str(path), "", 0.05, 42, "tokenizer", 4096), loaded))
        yield {"mb": written / MB, "bare_wall": bare.wall, "bare_cpu": bare.cpu, "wall": whole.wall, "cpu": whole.cpu}


def took(work: Callable[[], object]) -> Call:
    """Wall and CPU seconds of some work in this process."""
    wall, cpu = time.monotonic(), time.process_time()
    work()
    return Call(time.process_time() - cpu, time.monotonic() - wall, 0.0, 0)


def _bare(loaded: Any, texts: list[str]) -> None:
    """Encode everything and do nothing else, in calls as large as the check's."""
    from trainer.data.tokens import BATCH

    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH:
            loaded.backend_tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            batch, size = [], 0
    loaded.backend_tokenizer.encode_batch_fast(batch, add_special_tokens=False)


def memory(folder: Path, sizes: Iterable[float]) -> Iterator[dict[str, float]]:
    """A record for each size of a file, in MB."""
    for size in sizes:
        path = folder / "memory.jsonl"
        write_large(path, int(size * MB))
        one = call(path)
        yield {"mb": path.stat().st_size / MB, "rows": one.rows, "resident": one.memory, "wall": one.wall, "cpu": one.cpu}
        path.unlink()


def after_reading(rows: int) -> Iterator[dict[str, float]]:
    """One record: what equal and nearly equal rows among so many cost, in a process of its own."""
    argv = (sys.executable, "-m", "benchmarks.data_check_rows", str(rows))
    launch = (sys.executable, "-S", "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *argv)
    yield json.loads(subprocess.run(launch, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def conditions() -> dict[str, Any]:
    """Where it was measured."""
    import numpy
    import tokenizers

    versions = {"Python": platform.python_version(), "numpy": numpy.__version__, "tokenizers": tokenizers.__version__}
    return {"cores": os.cpu_count(), "machine": platform.machine(), "versions": versions}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate-mb", type=float, default=100, help="size of each file without tokens; 0 leaves this part as it was")
    parser.add_argument("--tokens-mb", type=float, default=30, help="size of the file with tokens; 0 leaves this part as it was")
    parser.add_argument("--memory-mb", default="500,2000,10000", help="sizes of the files for memory; added to what was measured")
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows for what comes after reading; 0 leaves this part as it was"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="without suffix: .json keeps every record, .md is the page")
    asked = parser.parse_args()
    raw, made = asked.out.with_suffix(".json"), asked.out.with_suffix(".md")
    kept = json.loads(raw.read_text()) if raw.exists() else {"rates": [], "tokens": [], "memory": [], "rows": []}
    kept["conditions"] = conditions()
    sizes = [float(size) for size in asked.memory_mb.split(",") if size]
    with tempfile.TemporaryDirectory(prefix="data-check-") as folder:
        parts = {
            "rates": without_tokens(Path(folder), int(asked.rate_mb * MB)) if asked.rate_mb else (),
            "tokens": with_tokens(Path(folder), int(asked.tokens_mb * MB)) if asked.tokens_mb else (),
            "memory": memory(Path(folder), sizes),
            "rows": after_reading(asked.rows) if asked.rows else (),
        }
        for name, records in parts.items():
            fresh = []
            for record in records:
                print(name, {key: round(value, 3) for key, value in record.items()}, flush=True)
                fresh.append(record)
            if name == "memory":  # of one file the newest
                by_size = {record["rows"]: record for record in (*kept[name], *fresh)}
                kept[name] = [by_size[rows] for rows in sorted(by_size)]
            else:
                kept[name] = fresh or kept.get(name, [])
            raw.write_text(json.dumps(kept, indent=1) + "\n")
    made.write_text(page(kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
