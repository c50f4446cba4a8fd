"""Stage frameworks: the training stack imports, DeepSpeed's own report agrees, and a step of each engine is the same step.

torchrun --nproc-per-node gpu -m trainer.gates.frameworks
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trainer.gates import runner
from trainer.gates.group import Group
from trainer.gates.outcome import Failed, Outcome, Problem
from trainer.leave import leave

GATE = "frameworks"
NEEDED = ("transformers", "accelerate", "datasets", "peft", "trl", "sentencepiece", "deepspeed")
RATE, WIDTH, ROWS = 0.1, 16, 8
SAME = 1e-5  # largest difference of a weight after the step, in fp32
_REPORT = {
    "torch": re.compile(r"^torch version \.+ (\S+)", re.MULTILINE),
    "cuda": re.compile(r"^torch cuda version \.+ (\S+)", re.MULTILINE),
    "deepspeed": re.compile(r"^deepspeed info \.+ ([^,\s]+)", re.MULTILINE),
    "async_io": re.compile(r"^async_io \.+ \S*\[(?:NO|YES)\]\S* \.+ \S*\[(OKAY|NO)\]", re.MULTILINE),
}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def imported() -> dict[str, str]:
    """Import the stack: name -> version. Raises Failed with the first that does not import."""
    found = {}
    for name in NEEDED:
        try:
            module = importlib.import_module(name)
        except Exception as error:  # whatever a package raises while it is imported is what has to be told
            raise Failed(
                Problem("ImportFailed", f"{name}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
            ) from error
        found[name] = str(getattr(module, "__version__", "no version"))
    return found


def report() -> dict[str, str]:
    """What DeepSpeed reports of this machine. Raises Failed where it does not."""
    done = subprocess.run((sys.executable, "-m", "deepspeed.env_report"), check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(Problem("DsReportFailed", f"deepspeed.env_report ended with {done.returncode}: {done.stderr.strip()[-200:]}"))
    return understood(done.stdout)


def understood(text: str) -> dict[str, str]:
    """The fields of ds_report that are compared; a field that it does not have is left out."""
    plain = _COLOUR.sub("", text)
    return {name: match[1] for name, pattern in _REPORT.items() if (match := pattern.search(plain))}


def disagreements(told: Mapping[str, str], loaded: Mapping[str, str | None]) -> list[Problem]:
    """Where the report and what this process loaded differ, or the report does not say."""
    found = []
    for name, version in loaded.items():
        if name not in told:
            found.append(Problem("DsReportUnclear", f"ds_report does not say its version of {name}"))
        elif told[name] != str(version):
            found.append(Problem("DsReportDiffers", f"ds_report says {name} {told[name]}, this process has {version}"))
    return found


def model(device: Any) -> Any:
    """The same two layers on every rank."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)).to(device)


def rows(rank: int, device: Any) -> Any:
    """Other rows on each rank."""
    import torch

    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(rank)).to(device)


def by_ddp(device: Any, rank: int) -> tuple[Any, str]:
    """A step of plain SGD, which every engine has to take alike."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    wrapped = DistributedDataParallel(model(device), device_ids=[device.index] if device.index is not None else None)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=RATE)
    wrapped(rows(rank, device)).pow(2).mean().backward()
    optimizer.step()
    return [weight.detach().clone() for weight in wrapped.parameters()], type(wrapped).__name__


def by_fsdp(device: Any, rank: int) -> tuple[Any, str]:
    """The same, sharded. Raises Failed where a weight is no DTensor."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    made = model(device)
    fully_shard(made, mesh=init_device_mesh(device.type, (torch.distributed.get_world_size(),)))
    if not all(isinstance(weight, DTensor) for weight in made.parameters()):
        raise Failed(Problem("NotSharded", "fully_shard left a weight whole"))
    optimizer = torch.optim.SGD(made.parameters(), lr=RATE)
    made(rows(rank, device)).pow(2).mean().backward()
    optimizer.step()
    return [weight.full_tensor() for weight in made.parameters()], "every weight a DTensor"


def by_zero(stage: int) -> Callable[[Any, int], tuple[Any, str]]:
    """The same by DeepSpeed. Raises Failed where the stage is another, or its weights are not partitioned."""

    def take(device: Any, rank: int) -> tuple[Any, str]:
        import deepspeed
        import torch

        made = model(device)
        config = {
            "train_micro_batch_size_per_gpu": ROWS,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
        }
        optimizer = torch.optim.SGD(made.parameters(), lr=RATE)
        engine, *_ = deepspeed.initialize(model=made, optimizer=optimizer, config=config)
        if engine.zero_optimization_stage() != stage:
            raise Failed(Problem("NotSharded", f"DeepSpeed runs stage {engine.zero_optimization_stage()} instead of {stage}"))
        if stage == 3 and not all(hasattr(weight, "ds_tensor") for weight in made.parameters()):
            raise Failed(Problem("NotSharded", "DeepSpeed left a weight whole in stage 3"))
        engine.backward(engine(rows(rank, device)).pow(2).mean())
        engine.step()
        with deepspeed.zero.GatheredParameters(list(made.parameters()), enabled=stage == 3):
            return [weight.detach().clone() for weight in made.parameters()], f"{type(engine).__name__} of stage {stage}"

    return take


def prepare_deepspeed(device: Any) -> None:
    """What DeepSpeed needs of a process group that is there, and on a CPU: no extension that it would compile for minutes."""
    import deepspeed

    if device.type == "cpu":
        from deepspeed import ops

        ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="nccl" if device.type == "cuda" else "gloo")


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Imports and the report, then a step of each engine beside DDP's."""
    import torch

    outcome.evidence["versions"] = group.all_do("importing the training stack", imported)[0]
    told = group.all_do("ds_report", report if group.rank == 0 else dict)[0]
    outcome.evidence["ds_report"] = told
    loaded = {"torch": torch.__version__, "deepspeed": outcome.evidence["versions"]["deepspeed"]}
    if device.type == "cuda":
        loaded["cuda"] = torch.version.cuda
        outcome.evidence["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    outcome.problems += disagreements(told, loaded)
    group.all_do("preparing DeepSpeed", lambda: prepare_deepspeed(device))
    truth: list[Any] = []
    ways = {"ddp": by_ddp, "fsdp": by_fsdp, "deepspeed-zero2": by_zero(2), "deepspeed-zero3": by_zero(3)}
    taken = {name: group.all_do(f"a step of {name}", partial(_step, way, device, group.rank, truth)) for name, way in ways.items()}
    outcome.evidence["steps"] = {name: {"how": said[0]["how"], "off": max(map(_off, said))} for name, said in taken.items()}
    outcome.problems += different(taken)


def different(taken: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Problem]:
    """Engines whose step was another than DDP's, and a step that moved nothing, which would be the same in all."""
    found = []
    if not all(one["moved"] > SAME for one in taken["ddp"]):
        found.append(Problem("StepDidNothing", "a step of ddp left the weights as they were"))
    for name, said in taken.items():
        if bad := tuple(rank for rank, one in enumerate(said) if not one["off"] <= SAME):
            most = max(map(_off, said))
            found.append(Problem("StepDiffers", f"{name}: weights after a step are {most:.1e} off DDP's", bad))
    return found


def _off(one: Mapping[str, Any]) -> float:
    return float(one["off"])


def _step(way: Callable[[Any, int], tuple[Any, str]], device: Any, rank: int, truth: list[Any]) -> dict[str, Any]:
    """Take it: how it was taken, how far the weights are from `truth`, which the first fills, and from where they began."""
    weights, how = way(device, rank)
    if not truth:
        truth += weights
    return {"how": how, "off": _apart(weights, truth), "moved": _apart(weights, list(model(device).parameters()))}


def _apart(some: Sequence[Any], others: Sequence[Any]) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(some, others, strict=True))


def main(argv: Sequence[str]) -> int:
    return runner.run(GATE, check, runner.parser(GATE, __doc__).parse_args(argv))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
