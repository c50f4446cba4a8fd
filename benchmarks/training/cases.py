"""What is measured of which model, in what order, and what has to come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.baselines.plain import LENGTH, STATED, TOLERANCE

PLAIN, TRL, OURS = "plain", "trl", "ours"
LOOPS = (PLAIN, TRL, OURS)
WARM, MEASURED, FREE = 3, 7, 5  # steps: a step that compiles is a warm one; between free ones nobody waits
# method -> (times the plain loop: at least, aim; times TRL's defaults: at least)
TARGETS = {
    ("1.5b", "lora"): (1.9, 2.2, 1.9),
    ("7.6b", "lora"): (1.6, 1.75, 1.9),
    ("1.5b", "full"): (1.25, 1.35, 1.4),
}


@dataclass(frozen=True)
class Measurement:
    """One process: a loop that trains, or another program that answers with JSON."""

    program: str  # a module of this package: steps, exact, ceilings
    model: str
    method: str = ""
    loop: str = ""
    batch: int = 0
    length: int = LENGTH
    steps: tuple[int, int] = (WARM, MEASURED)
    profile: bool = False
    packed: bool = False
    device: str = "cuda"
    repeat: int = 0

    @property
    def key(self) -> str:
        """What a later measurement repeats."""
        packed = ["packed"] if self.packed else []
        return " ".join([self.program, self.model, *filter(None, (self.method, self.loop)), *packed, f"b{self.batch}"])


def schedule(model: str, repeats: int) -> list[Measurement]:
    """In the order of their worth: a call that is cut off keeps one of each before any is repeated. Loops are interleaved."""
    cases = [(method, batch) for (name, method), (batch, _) in STATED.items() if name == model]
    once = [Measurement("ceilings", model)]
    for method, batch in cases:
        once += [Measurement("steps", model, method, loop, batch, profile=loop == OURS) for loop in LOOPS]
    once.append(Measurement("exact", model))
    again = [
        Measurement("steps", model, method, loop, batch, repeat=number)
        for number in range(1, repeats)
        for method, batch in cases
        for loop in LOOPS
    ]
    return once + again + (beyond(cases) if model == "7.6b" else [])


def beyond(cases: Sequence[tuple[str, int]]) -> list[Measurement]:
    """In the call that has time left: larger batches, and packed sequences of the small model, ours and TRL's."""
    packed = Measurement("steps", "1.5b", "lora", OURS, STATED["1.5b", "lora"][0], packed=True)
    larger = [Measurement("steps", "7.6b", method, OURS, 2 * batch) for method, batch in cases]
    return [packed, *larger, replace(packed, loop=TRL)]


def tiny(repeats: int) -> list[Measurement]:
    """The same programs with a model of two layers on a CPU: that they run, not how fast. STAND-IN."""
    small = Measurement("steps", "tiny", batch=2, length=128, steps=(1, 2), device="cpu")
    found = [
        replace(small, method=method, loop=loop, repeat=repeat)
        for repeat in range(repeats)
        for method in ("lora", "full")
        for loop in LOOPS
    ]
    found.append(replace(small, method="lora", loop=OURS, packed=True))
    return [replace(small, program="ceilings"), *found, replace(small, program="exact")]


def rates(rows: Sequence[Mapping[str, Any]], model: str, method: str, loop: str) -> list[float]:
    """Tokens/s of every repeat of one loop at the batch that is stated for its case."""
    batch = STATED[model, method][0] if (model, method) in STATED else None
    return [
        row["tokens_per_s"]
        for row in rows
        if (row["program"], row["model"], row["method"], row["loop"]) == ("steps", model, method, loop)
        and not row["packed"]
        and row.get("tokens_per_s")
        and batch in (None, row["batch"])
    ]


def holds(model: str, method: str, measured: float) -> bool:
    """Whether the plain loop landed where it was stated, so that a ratio to it counts."""
    return abs(measured / STATED[model, method][1] - 1) <= TOLERANCE
