"""Puts what the GPU machine lacks into benchmarks/carried/ as wheels for its Python: `python benchmarks/training/carry.py`.

That machine has no network: Python 3.12 with torch, transformers, peft, accelerate, pyarrow and pandas. Pure wheels, or for
x86-64 Linux.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CARRIED = Path(__file__).resolve().parent.parent / "carried"
MOST_MIB = 60
# the trainer's own pins, and what they import that is not there
ALONE = (
    "trl==1.16.0",
    "datasets==5.2.0",
    "liger-kernel==0.8.5",
    "dill",
    "multiprocess",
    "orjson",
    "prometheus-client",
    "zstandard",
)
BOARD = ("tensorboard", "tensorboard-data-server", "absl-py", "grpcio", "markdown", "protobuf", "werkzeug", "markupsafe")
WHOLE = ("pydantic>=2.11,<3",)  # with its core, which has to be of one version with it
FOR = (
    "--only-binary=:all:",
    "--python-version=3.12",
    "--implementation=cp",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
)


def main() -> int:
    CARRIED.mkdir(parents=True, exist_ok=True)
    for old in CARRIED.glob("*.whl"):
        old.unlink()
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *FOR, f"--dest={CARRIED}")
    codes = [subprocess.run((*pip, *wanted), check=False).returncode for wanted in (("--no-deps", *ALONE, *BOARD), WHOLE)]
    found = sorted(CARRIED.glob("*.whl"))
    size = sum(path.stat().st_size for path in found) / 2**20
    print(f"{len(found)} wheels, {size:.1f} MiB in {CARRIED}")
    if any(codes) or size > MOST_MIB:
        print(f"pip ended with {max(codes)}; {MOST_MIB} MiB is the most that is carried", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
