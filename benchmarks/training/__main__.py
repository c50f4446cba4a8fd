"""Plain loop, TRL with its defaults and ours, on one GPU, each measurement in a process of its own, one after another.

    python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/site benchmarks/carried/*.whl
    PYTHONPATH=/tmp/site:. python3 -m benchmarks.training --model 1.5b --out DIR     # and once more with 7.6b
    python -m benchmarks.training --tiny --out DIR                                   # two layers, CPU: that it runs (STAND-IN)
    python -m benchmarks.training.report DIR/training-*.json                         # page and plot, anywhere

Needs torch, transformers, peft and accelerate of the machine; what else is needed can be carried
(`benchmarks/training/carry.py`). DIR/training-MODEL.json is written anew after each measurement, so that a call that is cut off
keeps what it has. Exit status: 0 when each loop was measured, 1 when one was not, 2 for a wrong call.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.training.cases import LOOPS, Measurement, rates, schedule, tiny

MODELS = ("1.5b", "7.6b")
STAND_IN = "a model of two layers on a CPU; its times mean nothing"
ROOT = Path(__file__).resolve().parent.parent.parent
FROZEN = [ROOT / "benchmarks" / "baselines" / name for name in ("plain.py", "shapes.py")]
FAST = [ROOT / "trainer" / name for name in ("attention.py", "loss.py", "speed.py")]
FIRST_GUESS_S = 60.0  # what a measurement takes before one of its kind was seen


class Call:
    """One call: its deadline, what was measured so far, and the file that keeps it."""

    def __init__(self, model: str, out: Path, seconds: float) -> None:
        self._began, self._seconds = time.monotonic(), seconds
        self._file = out / f"training-{model}.json"
        self._scratch = out / f"training-{model}.part"
        self._took: dict[str, float] = {}
        about = {"model": model, "stand_in": STAND_IN if model == "tiny" else "", "date": time.strftime("%Y-%m-%d"), **sources()}
        self.kept: dict[str, Any] = {**about, "rows": [], "left_out": []}
        out.mkdir(parents=True, exist_ok=True)

    @property
    def left(self) -> float:
        return self._seconds - (time.monotonic() - self._began)

    def run(self, wanted: Measurement) -> None:
        """Measure it where it fits into the time that is left; keep the answer, or why there is none."""
        expected = self._took.get(wanted.key, FIRST_GUESS_S)
        if expected > self.left:
            self.kept["left_out"].append({"key": wanted.key, "repeat": wanted.repeat, "why": f"{self.left:.0f} s were left"})
        else:
            began = time.monotonic()
            row = {**asdict(wanted), **self._answer(wanted)}
            self._took[wanted.key] = row["wall_s"] = round(time.monotonic() - began, 1)
            self.kept["rows"].append(row)
            print(f"{wanted.key}: {_short(row)} in {row['wall_s']:.0f} s", flush=True)
        self.write()

    def _answer(self, wanted: Measurement) -> dict[str, Any]:
        argv = (sys.executable, "-m", "benchmarks.training.child", json.dumps(asdict(wanted)), str(self._scratch))
        quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
        self._scratch.unlink(missing_ok=True)
        try:
            done = subprocess.run(argv, env={**os.environ, **quiet}, check=False, capture_output=True, text=True, timeout=self.left)
        except subprocess.TimeoutExpired as late:
            told = late.stderr or b""
            return {"error": f"not done after {late.timeout:.0f} s", "said": told.decode(errors="replace")[-2000:]}
        said = f"{done.stdout[-500:]}{done.stderr[-3000:]}"
        if not self._scratch.exists():
            return {"error": f"exit {done.returncode}", "said": said}
        found: dict[str, Any] = json.loads(self._scratch.read_text())
        self._scratch.unlink()
        return {**found, "incomplete": said} if done.returncode else found

    def write(self) -> None:
        self.kept["seconds"] = round(time.monotonic() - self._began, 1)
        whole = self._file.with_suffix(".new")
        whole.write_text(json.dumps(self.kept, indent=1))
        whole.replace(self._file)


def sources() -> dict[str, str]:
    """Digests of what was measured: the frozen loop, and what makes ours fast."""
    found = {}
    for name, paths in {"frozen": FROZEN, "ours": FAST}.items():
        texts = [path.read_bytes() for path in paths]
        found[name] = hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
    return found


def _short(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"FAILED: {row['error']}: {row['said'].strip().splitlines()[-1:]}"
    if "tokens_per_s" in row:
        rest = ", INCOMPLETE" if "incomplete" in row else ""
        return f"{row['tokens_per_s']:,.0f} tokens/s, {row['useful_tflops']:.0f} TFLOP/s, {row['peak_gib']:.1f} GiB{rest}"
    return "done"


def missing(kept: dict[str, Any]) -> list[str]:
    """The loops of which nothing was measured."""
    model = kept["model"]
    methods = {row["method"] for row in kept["rows"] if row["method"]}
    return [f"{method} {loop}" for method in sorted(methods) for loop in LOOPS if not rates(kept["rows"], model, method, loop)]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.training", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", choices=MODELS)
    what.add_argument("--tiny", action="store_true", help="prove the program on a CPU")
    parser.add_argument("--out", type=Path, required=True, help="folder for training-MODEL.json")
    parser.add_argument("--minutes", type=float, default=9.0, help="what does not fit is left out, and said so (default 9)")
    parser.add_argument("--repeats", type=int, default=2, help="of each loop, interleaved (default 2)")
    parser.add_argument("--only", default="", help="only measurements whose key has this in it")
    asked = parser.parse_args(argv)
    model = "tiny" if asked.tiny else asked.model
    wanted = tiny(asked.repeats) if asked.tiny else schedule(model, asked.repeats)
    call = Call(model, asked.out, asked.minutes * 60)
    for one in wanted:
        if asked.only in one.key:
            call.run(one)
    without = missing(call.kept)
    stand_in = f" STAND-IN: {STAND_IN}." if asked.tiny else ""
    failed = [f"{row['program']} {row['loop']}".strip() for row in call.kept["rows"] if "error" in row]
    told = f"not measured: {without or 'nothing'}, failed: {failed or 'nothing'}.{stand_in}"
    print(f"{model}: {len(call.kept['rows'])} measurements, {told}")
    return 1 if without or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
