"""Runs a gate on this rank: joins the others, checks, tells one result, and says the same exit status everywhere."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from trainer.gates import backend
from trainer.gates.group import MISSING, Group, Place, join
from trainer.gates.outcome import Failed, Outcome, Problem, stdout_kept

PATIENCE_S = 300.0  # what NCCL may need to connect hundreds of GPUs
Check = Callable[[Group, Any, argparse.Namespace, Outcome], None]  # on which device, what was asked, and where it goes


def parser(gate: str, about: str | None) -> argparse.ArgumentParser:
    """With the options that every gate has."""
    found = argparse.ArgumentParser(
        prog=f"trainer.gates ({gate})", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--cpu", action="store_true", help="CPUs and gloo in the place of GPUs and NCCL: a stand-in")
    found.add_argument("--patience", type=seconds, default=PATIENCE_S, help="s that a rank may take (default 300)")
    return found


def seconds(text: str) -> float:
    """A positive number of seconds."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return value


def run(gate: str, check: Check, asked: argparse.Namespace) -> int:
    """Check on all ranks; the lowest one that is there tells the result. The exit status."""
    began = time.monotonic()
    outcome, place = Outcome(gate), Place(0, 1, 0, 1)
    with stdout_kept() as stdout:
        try:
            place = Place.from_environment()
            group = join(place, asked.patience)
            _checked(group, check, asked, outcome, stdout)
        except Failed as error:
            outcome.problems += error.problems
        outcome.evidence["seconds"] = round(time.monotonic() - began, 2)
        return outcome.tell(stdout) if place.rank == reporter(place.world, outcome.problems) else int(bool(outcome.problems))


def _checked(group: Group, check: Check, asked: argparse.Namespace, outcome: Outcome, stdout: TextIO) -> None:
    import torch.distributed as dist

    def late(problem: Problem) -> None:
        """In a thread, while the main one hangs in a collective: this process cannot end in another way."""
        outcome.problems.append(problem)
        if group.rank == 0:
            outcome.tell(stdout)
            group.told()
        else:
            group.until_told()  # the launcher ends every rank as soon as one has ended
        os._exit(1)

    group.late = late
    device = backend.device_of(group, asked.cpu)
    outcome.stand_in = backend.stand_in(device)
    outcome.evidence |= {"world": group.world, "ranks": group.roll(backend.identity(group, device))}
    group.all_do("connecting all ranks", lambda: backend.connect(group, device), "NotConnected")
    try:
        check(group, device, asked, outcome)
    finally:
        dist.destroy_process_group()


def reporter(world: int, problems: Sequence[Problem]) -> int:
    """The rank that tells the result: the lowest that is not missing."""
    absent = {rank for problem in problems if problem.reason == MISSING for rank in problem.ranks}
    return next((rank for rank in range(world) if rank not in absent), 0)
