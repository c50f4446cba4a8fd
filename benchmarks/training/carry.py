"""Puts what the GPU machine lacks into benchmarks/carried/ as wheels for its Python: `python benchmarks/training/carry.py`.

That machine has no network: Python 3.12 with torch, transformers, peft, accelerate, pyarrow and pandas. Pure wheels, or for
x86-64 Linux. `whole/` below has what `benchmarks.training.whole` needs besides, since the trainer stands on its own pins.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CARRIED = Path(__file__).resolve().parent.parent / "carried"
MOST_MIB = 60
# the trainer's own pins, and what they import that is not there
ALONE = ("trl==1.16.0", "datasets==5.2.0", "liger-kernel==0.8.5", "dill", "multiprocess")
WITH_CORE = ("pydantic>=2.11,<3",)  # its core has to be of one version with it
PINNED = (
    "transformers==5.24.0",
    "tokenizers==0.23.3",
    "accelerate==1.15.0",
    "peft==0.21.2",
    "safetensors==0.8.0",
    "huggingface-hub>=1.31,<2",
)
BOARD = ("tensorboard", "tensorboard-data-server", "absl-py", "grpcio", "markdown", "protobuf", "werkzeug", "markupsafe")
WHOLE = (*PINNED, *BOARD, "prometheus-client")
FOR = (
    "--only-binary=:all:",
    "--python-version=3.12",
    "--implementation=cp",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
)


def main() -> int:
    codes = [
        _download(CARRIED, "--no-deps", *ALONE),
        _download(CARRIED, *WITH_CORE),
        _download(CARRIED / "whole", "--no-deps", *WHOLE),
    ]
    found = sorted(CARRIED.rglob("*.whl"))
    size = sum(path.stat().st_size for path in found) / 2**20
    print(f"{len(found)} wheels, {size:.1f} MiB in {CARRIED}")
    if any(codes) or size > MOST_MIB:
        print(f"pip ended with {max(codes)}; {MOST_MIB} MiB is the most that is carried", file=sys.stderr)
        return 1
    return 0


def _download(folder: Path, *wanted: str) -> int:
    """pip's exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *FOR, f"--dest={folder}")
    return subprocess.run((*pip, *wanted), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
