"""Where words go: everything that a rank prints, native libraries included, to rank-N.log; what a person follows to train.log."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
from importlib import metadata
from pathlib import Path

PINS_TOUCHED = ("2.11", "2.12", "2.13", "2.14")  # releases of torch that have the options; one that is not known ends the process
LAYOUT = logging.Formatter("%(asctime)s rank %(rank)s %(levelname)s %(message)s")


class _Rank(logging.Filter):
    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def filter(self, record: logging.LogRecord) -> bool:
        record.rank = self.rank
        return True


def begin(folder: Path, rank: int, attempt: str = "0") -> None:
    """From here on this process' output is in `folder`; the console keeps what train.log has, from rank 0."""
    folder.mkdir(parents=True, exist_ok=True)
    console = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    file = os.open(folder / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    faulthandler.enable()
    logger = logging.getLogger("trainer")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if rank == 0:
        handlers += [logging.FileHandler(folder / "train.log", encoding="utf-8"), logging.StreamHandler(console)]
    for handler in handlers:
        handler.setFormatter(LAYOUT)
        handler.addFilter(_Rank(rank))
        logger.addHandler(handler)
    logging.captureWarnings(True)
    logging.getLogger().addHandler(logging.StreamHandler(sys.stderr))
    logger.info("begins: attempt %s, process %d", attempt, os.getpid())


def flight_recorder(folder: Path) -> None:
    """Let NCCL keep its last collectives and write them when one hangs. Before torch.distributed is started."""
    for name, value in (
        ("TORCH_FR_BUFFER_SIZE", "2000"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"),
        ("TORCH_NCCL_DUMP_ON_TIMEOUT", "1"),
        ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", str(folder / "nccl-trace-rank-")),
        ("TORCH_FR_DUMP_TEMP_FILE", str(folder / "nccl-trace-rank-")),
    ):
        os.environ.setdefault(name, value)


def pinning() -> None:
    """Let PyTorch fill memory that GPUs copy to before the driver locks it: CUDA calls of training would wait for all of that.

    Before torch takes any. What the user says of its allocator stands. Source: PyTorch's notes on CUDA semantics.
    """
    release = ".".join(metadata.version("torch").split(".")[:2])
    if release in PINS_TOUCHED and not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & set(os.environ):
        os.environ["PYTORCH_ALLOC_CONF"] = "pinned_use_cuda_host_register:True,pinned_num_register_threads:4"
