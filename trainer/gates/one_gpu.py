"""Stage torch: the environment imports as it is locked, and each GPU of this node multiplies right and as fast as it should.

python -m trainer.gates.one_gpu [--lock requirements.txt] [--cuda 13.0] [--gpus 8] [--gpu 'NVIDIA A100 80GB PCIe'] [--least-tflops
200]
"""

from __future__ import annotations

import argparse
import importlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from trainer.gates import backend, runner
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome, Problem
from trainer.leave import leave

GATE = "torch"
SIDE, SIDE_ON_CPU, TIMES, CORNER = 8192, 512, 10, 64
WRONG = 1e-2  # relative error of bf16 operands summed in fp32 is some 1e-3
SHARE_OF_PEERS = 0.8  # of the median of the node's GPUs
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")


def pins(lock: str) -> dict[str, str]:
    """name -> version of a requirements file; options and comments are passed over."""
    found = (_PIN.match(line.strip()) for line in lock.splitlines())
    return {match[1]: match[2] for match in found if match}


def packages(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """Import each pinned package: the versions that are really there, and what is missing, different or does not import."""
    modules: dict[str, list[str]] = {}
    for module, owners in metadata.packages_distributions().items():
        for owner in owners:
            modules.setdefault(_plain(owner), []).append(module)
    found, problems = {}, []
    for name, version in wanted.items():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            problems.append(Problem("PackageMissing", f"{name} is locked at {version} and not installed"))
            continue
        if found[name].partition("+")[0] != version.partition("+")[0]:
            problems.append(Problem("PackageVersion", f"{name} is locked at {version}, loaded is {found[name]}"))
        problems += _imported(name, [module for module in modules.get(_plain(name), []) if not module.startswith("_")])
    return found, problems


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(name: str, modules: Sequence[str]) -> list[Problem]:
    for module in modules[:1]:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - whatever a package raises while it is imported is what has to be told
            return [
                Problem("ImportFailed", f"{name}: import {module}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
            ]
    return []


def consistent() -> list[Problem]:
    """What `pip check` has to say of this environment, and not of what lies in the folder where it was started (-I)."""
    done = subprocess.run((sys.executable, "-I", "-m", "pip", "check"), check=False, capture_output=True, text=True)
    return [] if done.returncode == 0 else [Problem("PipCheck", line) for line in (done.stdout or done.stderr).strip().splitlines()]


def multiply(device: Any) -> dict[str, Any]:
    """A bf16 matmul: TFLOP/s, and the relative error of a corner of it against fp64."""
    import torch

    side = SIDE if device.type == "cuda" else SIDE_ON_CPU
    torch.manual_seed(0)
    one, other = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    found = one @ other
    backend.wait(device)
    began = time.perf_counter()
    for _ in range(TIMES):
        torch.mm(one, other, out=found)
    backend.wait(device)
    took = (time.perf_counter() - began) / TIMES
    right = one[:CORNER].double() @ other[:, :CORNER].double()
    error = float((found[:CORNER, :CORNER].double() - right).norm() / right.norm())
    return {"device": str(device), "tflops": round(2 * side**3 / took / 1e12, 2), "error": error}


def rates(measured: Sequence[Mapping[str, Any]], least: float) -> list[Problem]:
    """Wrong products; GPUs below the floor; GPUs slower than their peers."""
    middle = statistics.median(one["tflops"] for one in measured)
    found = []
    for one in measured:
        if not one["error"] < WRONG:
            found.append(Problem("ProductWrong", f"{one['device']}: a product is {one['error']:.1e} off fp64"))
        if one["tflops"] < least:
            found.append(Problem("MatmulSlow", f"{one['device']}: {one['tflops']:g} TFLOP/s, at least {least:g} are expected"))
        elif one["tflops"] < SHARE_OF_PEERS * middle:
            found.append(
                Problem("GpuSlowerThanPeers", f"{one['device']}: {one['tflops']:g} TFLOP/s, the median of this node is {middle:g}")
            )
    return found


def devices(asked: argparse.Namespace, cpu: bool) -> tuple[list[Any], dict[str, Any], list[Problem]]:
    """What torch sees, as declared or not."""
    import torch

    seen = 0 if cpu else torch.cuda.device_count()
    names = [torch.cuda.get_device_name(number) for number in range(seen)]
    found = []
    if asked.cuda and torch.version.cuda != asked.cuda and not cpu:
        found.append(Problem("CudaVersion", f"torch is built for CUDA {torch.version.cuda}, declared is {asked.cuda}"))
    if asked.gpus is not None and seen != asked.gpus and not cpu:
        found.append(Problem("GpuCount", f"torch sees {seen} GPUs, declared are {asked.gpus}"))
    if asked.gpu and (other := sorted({name for name in names if name != asked.gpu})):
        found.append(Problem("GpuModel", f"torch sees {', '.join(other)}, declared is {asked.gpu}"))
    evidence = {"torch": torch.__version__, "torch_cuda": torch.version.cuda, "gpus": names}
    return [torch.device("cuda", number) for number in range(seen)] or [torch.device("cpu")], evidence, found


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Packages, devices, and a product on each device."""
    if asked.lock:
        outcome.evidence["packages"], problems = packages(pins(asked.lock.read_text(encoding="utf-8")))
        outcome.problems += problems
    outcome.problems += consistent()
    found, evidence, problems = devices(asked, device.type == "cpu")
    outcome.problems += problems
    outcome.evidence |= {**evidence, "matmul": [multiply(one) for one in found]}
    outcome.problems += rates(outcome.evidence["matmul"], asked.least_tflops)


def lock(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--lock", type=lock, help="requirements file whose pins have to be what is loaded")
    options.add_argument("--cuda", help="series that torch has to be built for")
    options.add_argument("--gpus", type=int, help="GPUs that the node is declared to have")
    options.add_argument("--gpu", help="their model, as nvidia-smi -L prints it")
    options.add_argument("--least-tflops", type=float, default=0.0, help="bf16 matmul rate that each has to reach")
    return runner.run(GATE, check, options.parse_args(argv))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
