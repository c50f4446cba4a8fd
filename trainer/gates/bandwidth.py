"""All-reduce through torch as nccl-tests measures it: sizes that double, bus bandwidth, and values that came out wrong."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from trainer.gates import backend
from trainer.gates.group import Group
from trainer.gates.outcome import Outcome, Problem

LEAST_BYTES, LARGEST_BYTES, LARGEST_ON_CPU = 8, 4 * 2**30, 2**22
WARM, TIMES_SMALL, TIMES_LARGE, SMALL_BYTES = 2, 20, 5, 2**20
PERIOD = 2**20  # elements after which the pattern begins anew
SHARE_OF_BASELINE = 0.9
_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def size(text: str) -> int:
    """Bytes from nccl-tests' form: 8, 512K, 4G."""
    found = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if not found or int(found[1]) * _UNIT[found[2]] % 4:
        raise argparse.ArgumentTypeError(f"'{text}' is no size in whole floats, such as 8, 512K or 4G")
    return int(found[1]) * _UNIT[found[2]]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--largest", type=size, help="bytes, as 4G (default; on a CPU 4M)")
    parser.add_argument("--least-busbw", type=float, default=0.0, metavar="GB/s", help="bus bandwidth that has to be reached")
    parser.add_argument(
        "--baseline", type=float, default=0.0, metavar="GB/s", help="what was measured here before; 0.9 of it has to be reached"
    )


def sizes(largest: int) -> list[int]:
    """From 8 bytes, doubling, up to `largest`."""
    found = [LEAST_BYTES]
    while found[-1] * 2 <= largest:
        found.append(found[-1] * 2)
    return found


def one(bytes_: int, device: Any, rank: int, world: int) -> dict[str, Any]:
    """On this rank: seconds of an all-reduce of so many bytes of fp32, and how many of its values are wrong."""
    import torch
    import torch.distributed as dist

    count = bytes_ // 4
    pattern = (torch.arange(min(PERIOD, count), device=device) % 7 + 1).float()
    held = torch.empty(count, device=device)
    held.view(-1, len(pattern)).copy_(pattern * (rank + 1))
    dist.all_reduce(held)
    expected = pattern * (world * (world + 1) // 2)
    wrong = int((held.view(-1, len(pattern)) != expected).sum())
    held.fill_(0.0)  # so that no value grows while it is timed
    for _ in range(WARM):
        dist.all_reduce(held)
    times = TIMES_SMALL if bytes_ <= SMALL_BYTES else TIMES_LARGE
    backend.wait(device)
    began = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(held)
    backend.wait(device)
    return {"seconds": (time.perf_counter() - began) / times, "wrong": wrong}


def measured(bytes_: int, said: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row as nccl-tests has it, by the slowest rank: GB/s are powers of ten, busbw is 2 (n - 1) / n of algbw."""
    took, world = max(one["seconds"] for one in said), len(said)
    algorithm = bytes_ / took / 1e9
    row = {"bytes": bytes_, "time_us": round(took * 1e6, 1), "algbw_gb_s": round(algorithm, 3)}
    return {**row, "busbw_gb_s": round(algorithm * 2 * (world - 1) / world, 3), "wrong": sum(one["wrong"] for one in said)}


def too_slow(best: float, least: float, baseline: float) -> list[Problem]:
    """Where the best bus bandwidth is below what has to be reached."""
    found = []
    if best < least:
        found.append(Problem("BandwidthBelowFloor", f"{best:.3f} GB/s bus bandwidth at best; at least {least:g} are declared"))
    if best < SHARE_OF_BASELINE * baseline:
        told = f"{best:.3f} GB/s bus bandwidth at best; {SHARE_OF_BASELINE:g} of {baseline:g}, measured here before, are needed"
        found.append(Problem("BandwidthBelowBaseline", told))
    return found


def check(group: Group, device: Any, asked: argparse.Namespace, outcome: Outcome) -> None:
    """Every size; then whether it was right, and fast enough."""
    largest = asked.largest or (LARGEST_BYTES if device.type == "cuda" else LARGEST_ON_CPU)
    rows = []
    for bytes_ in sizes(largest):
        said = group.all_do(f"all-reduce of {bytes_} bytes", partial(one, bytes_, device, group.rank, group.world))
        rows.append(measured(bytes_, said))
        if bad := tuple(rank for rank, mine in enumerate(said) if mine["wrong"]):
            outcome.problems.append(Problem("SumWrong", f"all-reduce of {bytes_} bytes: {rows[-1]['wrong']} values are wrong", bad))
    best = max(row["busbw_gb_s"] for row in rows)
    outcome.evidence |= {"sizes": rows, "busbw_gb_s": best}
    outcome.problems += too_slow(best, asked.least_busbw, asked.baseline)
