"""Runs of the trainer as its users start them: torchrun with so many ranks, in the training environment, on a data root."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trainer import tiny
from tools.sources import ROOT
from trainer import result

DEFAULTS: dict[str, Any] = {
    "max_steps": 6,
    "per_device_train_batch_size": 2,
    "effective_batch_size": 8,
    "logging_steps": 1,
    "save_steps": 2,
    "max_length": 64,
    "learning_rate": 0.001,
}
DATA = {"instruction": "sft", "messages": "sft", "preference": "dpo"}


@dataclass(frozen=True, slots=True)
class Site:
    """A data root with a tiny model, and the Python of the training environment."""

    root: Path
    python: Path

    def run_file(self, name: str, data: str = "instruction", **values: Any) -> Path:
        """A run file of the tiny model; `values` go over the defaults, None leaves one out."""
        said = {
            "model": str(self.root / "models/base/tiny"),
            "dataset": f"{data}.jsonl",
            "objective": DATA.get(data, "sft"),
            **DEFAULTS,
            **values,
        }
        path = self.root / "runs" / f"{name}.yaml"
        return tiny.run_file(path, **{key: value for key, value in said.items() if value is not None})

    def argv(self, file: Path, ranks: int, *options: str) -> tuple[str, ...]:
        """The command line of a run."""
        launcher = (str(self.python), "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
        return (*launcher, "-m", "trainer.train", str(file), "--data-root", str(self.root), *options)

    def start(self, file: Path, ranks: int = 2, *options: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Begin a run in a process group of its own."""
        return subprocess.Popen(
            self.argv(file, ranks, *options),
            cwd=ROOT,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def train(self, file: Path, ranks: int = 2, *options: str, env: Mapping[str, str] | None = None) -> Done:
        """A run to its end."""
        process = self.start(file, ranks, *options, env=env)
        text, _ = process.communicate(timeout=300)
        return Done(self, file.stem, process.returncode, text)

    def until(self, file: Path, condition: Callable[[], bool], ranks: int = 2, *options: str, how: str = "kill") -> str:
        """Begin a run and end it as soon as `condition` holds: all its ranks by SIGKILL, or a word for `stop_by`."""
        process = self.start(file, ranks, *options)
        limit = time.monotonic() + 120
        while not condition():
            if process.poll() is not None:
                text, _ = process.communicate()
                return f"ended by itself ({process.returncode}): {text[-1500:]}"
            if time.monotonic() > limit:
                how = "kill"
                break
            time.sleep(0.002)
        if how == "kill":
            kill(process.pid)
        else:
            self.stop_by(how, file.stem, process.pid)
        text, _ = process.communicate(timeout=120)
        return text if how != "kill" else ""

    def stop_by(self, how: str, name: str, launcher: int) -> None:
        """Ask a run to stop: by its file, or by a signal to one of its ranks."""
        if how == "file":
            (self.checkpoints(name) / "stop").touch()
            return
        os.kill(workers(launcher)[-1], signal.Signals[how])

    def logged(self, name: str) -> int:
        """The newest step that was logged, over all attempts; 0 before the first."""
        return max(tiny.losses(self.logs(name)), default=0) if (self.logs(name) / "metrics.jsonl").exists() else 0

    def call(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The trainer as one process, without torchrun."""
        argv = (str(self.python), "-m", "trainer.train", *words)
        return subprocess.run(argv, cwd=ROOT, env=environment(env), capture_output=True, text=True, check=False, timeout=300)

    def checkpoints(self, name: str) -> Path:
        return self.root / "checkpoints" / name

    def logs(self, name: str) -> Path:
        return self.root / "logs" / "training" / name


@dataclass(frozen=True, slots=True)
class Done:
    """What a run came to."""

    site: Site
    name: str
    status: int
    text: str

    @property
    def result(self) -> dict[str, Any]:
        """result.json, whose seal holds."""
        found = result.read(self.site.checkpoints(self.name))
        assert found is not None, self.text[-3000:]
        return found

    @property
    def losses(self) -> dict[int, str]:
        return tiny.losses(self.site.logs(self.name))

    @property
    def log(self) -> str:
        return (self.site.logs(self.name) / "train.log").read_text(encoding="utf-8")


def workers(launcher: int) -> list[int]:
    """The ranks that torchrun started; each is in a session of its own."""
    return [int(pid) for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="utf-8").split()]


def kill(launcher: int) -> None:
    """All ranks and torchrun at once, as when a node loses its power."""
    for pid in (*workers(launcher), launcher):
        os.kill(pid, signal.SIGKILL)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """One thread a rank, and nothing of the caller's launch."""
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(more or {})}


def site(root: Path, python: Path) -> Site:
    """Make a data root."""
    argv: Sequence[str] = (str(python), "-m", "tests.trainer.tiny", str(root))
    subprocess.run(argv, cwd=ROOT, env=environment(), check=True, capture_output=True)
    return Site(root, python)
