"""Stage ddp-node: one process a GPU on one node, each with its own, and what they add up is right.

torchrun --nproc-per-node gpu -m trainer.gates.ddp_node [--gpus 8]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer.gates import runner
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome, Problem
from trainer.leave import leave

GATE = "ddp-node"
SIZES = (1, 1_000, 1_000_003)  # elements; the last is no multiple of anything


def placed(ranks: Sequence[dict[str, Any]], gpus: int | None, hosts: int | None) -> list[Problem]:
    """What is wrong with who runs where: a GPU for each rank, as many as declared, on as many hosts as declared."""
    found = []
    for uuid, times in Counter(rank["uuid"] for rank in ranks).items():
        if times > 1:
            shared = tuple(rank["rank"] for rank in ranks if rank["uuid"] == uuid)
            found.append(Problem("GpuShared", f"one GPU ({uuid}) has {times} ranks", shared))
    counts = Counter(rank["host"] for rank in ranks)
    for host, times in counts.items():
        if gpus is not None and times != gpus:
            mine = tuple(rank["rank"] for rank in ranks if rank["host"] == host)
            found.append(Problem("WorldSize", f"{times} ranks on {host}, declared are {gpus} GPUs", mine))
    if hosts is not None and len(counts) != hosts:
        found.append(Problem("HostCount", f"ranks are on {len(counts)} hosts ({', '.join(counts)}), {hosts} were declared"))
    if len({rank["gpu"] for rank in ranks}) > 1:
        kinds = ", ".join(f"{kind} ({times})" for kind, times in Counter(rank["gpu"] for rank in ranks).items())
        found.append(Problem("GpuModelsDiffer", f"ranks have different GPUs: {kinds}"))
    return found


def sums(group: Group, device: Any) -> list[dict[str, Any]]:
    """All-reduce of values that are known, in three types and sizes: for each what differs from the right sum, on this rank.

    Rank r holds (r + 1) x (i mod 7 + 1) at place i, so the sum is world (world + 1) / 2 x (i mod 7 + 1); bf16
    holds it exactly up to 8 bits, and is compared within its rounding beyond.
    """
    import torch
    import torch.distributed as dist

    found = []
    total = group.world * (group.world + 1) // 2
    for kind in (torch.int64, torch.float32, torch.bfloat16):
        for size in SIZES:
            pattern = torch.arange(size, device=device) % 7 + 1
            held = (pattern * (group.rank + 1)).to(kind)
            dist.all_reduce(held)
            expected = pattern * total
            tolerance = 0.0 if kind is not torch.bfloat16 or total * 7 <= 256 else group.world * 2.0**-8
            wrong = (held.double() - expected.double()).abs() > tolerance * expected
            found.append({"type": str(kind).removeprefix("torch."), "elements": size, "wrong": int(wrong.sum())})
    return found


def wrong_sums(said: Sequence[Sequence[dict[str, Any]]]) -> list[Problem]:
    """The sums that came out wrong, with the ranks that got them."""
    found = []
    for number, one in enumerate(said[0]):
        bad = tuple(rank for rank, mine in enumerate(said) if mine[number]["wrong"])
        if bad:
            most = max(mine[number]["wrong"] for mine in said)
            found.append(Problem("SumWrong", f"all-reduce of {one['elements']} {one['type']}: up to {most} values are wrong", bad))
    return found


def step(device: Any, rank: int, world: int) -> float:
    """One step of DistributedDataParallel: how far the gradient is from the mean over all ranks, which is known."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Linear(8, 1, bias=False).to(device), device_ids=[device.index] if device.index is not None else None
    )
    model(torch.full((4, 8), float(rank + 1), device=device)).mean().backward()
    gradient = next(model.parameters()).grad
    assert gradient is not None
    return float((gradient - (world + 1) / 2).abs().max())


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Places, sums, and a step."""
    outcome.problems += placed(outcome.evidence["ranks"], asked.gpus, asked.hosts)
    said = group.all_do("all-reduce", lambda: sums(group, device))
    outcome.problems += wrong_sums(said)
    outcome.evidence["sums"] = said[0]
    off = group.all_do("a step of DDP", lambda: step(device, group.rank, group.world))
    outcome.evidence["gradient_off"] = max(off)
    if bad := tuple(rank for rank, value in enumerate(off) if value > 1e-5):
        outcome.problems.append(Problem("GradientWrong", f"the gradient is not the mean over all ranks: {max(off):g} off", bad))


def main(argv: Sequence[str]) -> int:
    options = runner.parser(GATE, __doc__)
    options.add_argument("--gpus", type=int, help="GPUs that the node is declared to have")
    asked = options.parse_args(argv)
    asked.hosts = 1
    return runner.run(GATE, check, asked)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
