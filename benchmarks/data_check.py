"""How fast training data are checked, and in how much memory: `python -m benchmarks.data_check` in the trainer's environment.

Speed without tokens: MB of the file a second of CPU, of whole processes, imports and all. Speed with tokens: in one process, in
turns, the bare tokenizer (conversations already rendered, nothing else done) and the whole check; MB of rendered text a second of
wall time, each on all cores. Memory: the largest resident size of a process by size of the file. Writes
benchmarks/results/data_check.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training_text import Words, write, write_large

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "data_check.md"
REPEATS, TURNS = 3, 7
RATE, SHARE = 20.0, 0.70  # MB/s a core without tokens; of the bare tokenizer's rate with tokens
MEMORY = 1000.0  # MB for 10 GB
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


def without_tokens(folder: Path, size: int) -> list[str]:
    """A line of the table for each mean size of a row."""
    told = []
    for words in (30, 120, 500):
        path = folder / f"{words}.jsonl"
        rows = write(path, size, words)
        calls = [call(path) for _ in range(REPEATS)]
        mean = path.stat().st_size / rows
        rates = sorted(mean * rows / one.cpu / MB for one in calls)
        told.append(f"| {mean:,.0f} B | {rows:,} | {rates[0]:.1f} | {statistics.median(rates):.1f} | {rates[-1]:.1f} |")
        print(told[-1], flush=True)
        path.unlink()
    return told


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


def with_tokens(folder: Path, size: int) -> tuple[list[str], float]:
    """Lines of the table, and the check's share of the bare rate: the median of turns that follow each other."""
    from trainer.data import check, tokens
    from trainer.data.read import Malformed, rows
    from trainer.data.report import Asked

    path = folder / "tokens.jsonl"
    write(path, size)
    loaded = tokens.load(tokenizer(folder))
    texts = tokens.rendered(loaded, [row.messages for row in rows(path) if not isinstance(row, Malformed)])
    written = sum(len(str(text).encode()) for text in texts)
    told, shares = [], []
    pieces = [str(text) for text in texts]
    for turn in range(TURNS):
        bare = took(lambda: _bare(loaded, pieces))
        whole = took(lambda: check.check(Asked(str(path), "", 0.05, 42, "tokenizer", 4096), loaded))
        shares.append(bare.wall / whole.wall)
        rates = " | ".join(f"{written / seconds / MB:.2f}" for seconds in (bare.wall, whole.wall, bare.cpu, whole.cpu))
        told.append(f"| {turn + 1} | {rates} | {shares[-1]:.1%} | {bare.cpu / whole.cpu:.1%} |")
        print(told[-1], flush=True)
    return told, statistics.median(shares)


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


def memory(folder: Path, sizes: list[int]) -> tuple[list[str], float]:
    """Lines of the table, and what 10 GB would take by the slope between the smallest and the largest file."""
    calls = []
    for size in sizes:
        path = folder / "memory.jsonl"
        write_large(path, size)
        calls.append((path.stat().st_size / MB, call(path)))
        print(f"{calls[-1][0]:,.0f} MB: {calls[-1][1].memory:.0f} MB resident", flush=True)
        path.unlink()
    (small, first), (large, last) = calls[0], calls[-1]
    slope = (last.memory - first.memory) / (large - small)
    told = [f"| {size:,.0f} | {one.rows:,} | {one.memory:.0f} | {size / one.wall:.1f} |" for size, one in calls]
    return told, last.memory + slope * (10_000 - large)


def page(asked: argparse.Namespace, folder: Path) -> str:
    """Everything measured, as the page that is kept."""
    import numpy
    import tokenizers

    rates = without_tokens(folder, int(asked.rate_mb * MB))
    turns, share = with_tokens(folder, int(asked.tokens_mb * MB))
    sizes, whole = memory(folder, [int(float(size) * MB) for size in asked.memory_mb.split(",")])
    where = f"Python {platform.python_version()}, numpy {numpy.__version__}, tokenizers {tokenizers.__version__}"
    return _page(where, rates, turns, share, sizes, whole)


def _page(where: str, rates: list[str], turns: list[str], share: float, sizes: list[str], whole: float) -> str:
    return "\n".join(
        (
            "# Checking training data",
            "",
            f"`python -m benchmarks.data_check`, {os.cpu_count()} cores ({platform.machine()}) shared with other work, {where}.",
            "Made-up rows, half Chinese, half English; every figure is of whole calls, duplicates and near duplicates looked for.",
            "",
            f"## Without tokens: MB of the file a second of CPU (wanted: {RATE:.0f})",
            "",
            "| mean row | rows | worst | median | best |",
            "|---|---|---|---|---|",
            *rates,
            "",
            f"## With tokens: MB/s of rendered text, all cores (wanted: {SHARE:.0%} of the bare tokenizer)",
            "",
            f"A byte-level BPE of {VOCABULARY:,} tokens; the two take turns in one process.",
            "",
            "| turn | bare, wall | check, wall | bare, CPU | check, CPU | share, wall | share, CPU |",
            "|---|---|---|---|",
            *turns,
            "",
            f"Median of the shares of wall time: {share:.1%}.",
            "",
            f"## Memory: largest resident MB (wanted: under {MEMORY:.0f} for 10 GB)",
            "",
            "| file, MB | rows | resident, MB | MB/s, wall |",
            "|---|---|---|---|",
            *sizes,
            "",
            f"By the slope between the smallest and the largest, 10 GB would take {whole:.0f} MB: computed, not measured.",
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate-mb", type=float, default=100, help="size of each file without tokens")
    parser.add_argument("--tokens-mb", type=float, default=60, help="size of the file with tokens")
    parser.add_argument("--memory-mb", default="250,500,1000,2000", help="sizes of the files for memory")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="data-check-") as folder:
        text = page(asked, Path(folder))
    asked.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
