"""Where measurements go: Prometheus on each rank; JSONL and TensorBoard by rank 0; a heartbeat file a rank."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, start_http_server

# name -> what it is; a value that a device does not have is not there, and never 0
METRICS = {
    "loss": "loss of the last logged steps, mean over all ranks",
    "learning_rate": "learning rate of the last step",
    "tokens_per_second": "tokens a second of this rank, padding not counted",
    "samples_per_second": "rows or packed sequences a second of this rank",
    "step_seconds": "seconds an optimizer step",
    "epoch": "epochs done",
    "global_step": "optimizer steps done",
    "gradient_norm": "norm of all gradients before clipping",
    "gpu_memory_bytes": "most memory that this rank's tensors took on its GPU",
    "checkpoint_age_seconds": "seconds since the newest sealed checkpoint",
    "checkpoint_duration_seconds": "seconds that the newest checkpoint held training up",
    "data_wait_seconds": "seconds a step that waited for data",
    "useful_tflops": "useful floating-point operations of this rank in 10^12 a second",
    "ceiling_share": "share of the card's dense bf16 rate that is useful",
}
FROM_TRAINER = {"loss": "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm", "epoch": "epoch"}
BEAT = 1.0  # seconds between heartbeats, at least


class Telemetry:
    """One rank's. Files go to `folder`; `port` 0 serves nothing."""

    def __init__(self, folder: Path, job: str, rank: int, port: int = 0, address: str = "127.0.0.1") -> None:
        self.folder, self.job, self.rank = folder, job, rank
        self.registry = CollectorRegistry()
        self._gauges: dict[str, Any] = {}
        self._saved = 0.0
        self._heart = Heart(folder / f"heartbeat-rank-{rank}.json", rank)
        self._lines = (folder / "metrics.jsonl").open("a", encoding="utf-8") if rank == 0 else None
        self._board: Any = None
        self.server = start_http_server(port, addr=address, registry=self.registry)[0] if port else None

    def set(self, name: str, value: float) -> None:
        """One metric of METRICS."""
        if name not in self._gauges:
            gauge = Gauge(f"reconcile_training_{name}", METRICS[name], ["job", "rank"], registry=self.registry)
            self._gauges[name] = gauge.labels(self.job, str(self.rank))
        self._gauges[name].set(value)

    def saved(self, seconds: float) -> None:
        """A checkpoint was sealed, and held training up for so long."""
        self._saved = time.time()
        self.set("checkpoint_duration_seconds", seconds)
        self.set("checkpoint_age_seconds", 0.0)
        self._gauges["checkpoint_age_seconds"].set_function(lambda: time.time() - self._saved)

    def logged(self, step: int, values: dict[str, float]) -> None:
        """What the trainer logs, with what this rank measured; evaluation has names that begin with eval_."""
        self.set("global_step", step)
        for name, value in values.items():
            if (known := FROM_TRAINER.get(name, name)) in METRICS:
                self.set(known, value)
        if self._lines is None:
            return
        record: dict[str, Any] = {"step": step, "time": time.time(), **values}
        if "loss" in values:
            record["loss_hex"] = float(values["loss"]).hex()
        self._lines.write(json.dumps(record) + "\n")
        self._lines.flush()
        for name, value in values.items():
            self._tensorboard(step).add_scalar(name, value, step)

    def _tensorboard(self, step: int) -> Any:
        if self._board is None:
            from torch.utils.tensorboard import SummaryWriter

            # what an earlier run wrote of steps that are done again is not shown
            self._board = SummaryWriter(log_dir=str(self.folder / "tensorboard"), purge_step=step)
        return self._board

    def beat(self, step: int, doing: str, force: bool = False) -> None:
        """Say that this rank is alive, at most once a second unless it begins something else. Raises what the last time met."""
        self._heart.beat(step, doing, force)

    def close(self) -> None:
        """Write out what is left."""
        self._heart.stop()
        if self._lines is not None:
            self._lines.close()
        if self._board is not None:
            self._board.close()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


class Heart:
    """The heartbeat file of a rank, written beside training: on a disk that takes a checkpoint, to replace a file can take long."""

    def __init__(self, path: Path, rank: int) -> None:
        self.path, self.rank = path, rank
        self._last = 0.0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="heartbeat")
        self._writing: Future[None] | None = None

    def beat(self, step: int, doing: str, force: bool) -> None:
        """Leave one to be written. Raises OSError where the last one could not be."""
        now = time.time()
        pending = self._writing is not None and not self._writing.done()
        if self._writing is not None and not pending:
            self._writing.result()
        if force or (now - self._last >= BEAT and not pending):
            self._last = now
            self._writing = self._writer.submit(self._write, {"rank": self.rank, "step": step, "time": now, "doing": doing})

    def stop(self) -> None:
        """Until the last one is written. Raises OSError where it could not be."""
        self._writer.shutdown()
        if self._writing is not None:
            self._writing.result()

    def _write(self, told: dict[str, Any]) -> None:
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(told) + "\n", encoding="utf-8")
        aside.replace(self.path)
