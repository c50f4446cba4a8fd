"""16 GPUs on paper: what each way of training sends in a step, and what that leaves of 16 times the measured rate of one GPU.

Pure arithmetic over the rows of benchmarks/results/training.json. `python -m benchmarks.training.scaling` writes docs/scaling.md.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.baselines.plain import LENGTH, RANK, STATED
from benchmarks.baselines.shapes import SHAPES, Shape
from benchmarks.training.cases import OURS, rates

ROOT = Path(__file__).resolve().parent.parent.parent
RAW, PAGE = ROOT / "benchmarks" / "results" / "training.json", ROOT / "docs" / "scaling.md"
NODES, GPUS = 2, 16
# The links of the reference site, and the share of their line rate that is reached. Assumed: the gates measure what it is.
PCIE_GB_S, NETWORK_GBIT_S, REACHED = 31.5, 200.0, 0.8  # PCIe 4.0 x16 in one direction; one port a node
LINKS_GB_S = {"PCIe 4.0 x16 in a node": PCIE_GB_S * REACHED, "200 Gb/s RDMA between nodes": NETWORK_GBIT_S / 8 * REACHED}
SLOW_GB_S = (10.0, 5.0, 2.5)  # what a busbw below the assumption would leave
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Way:
    """A way of training: bytes a trained or whole parameter that every GPU's share of a step moves, each by a ring."""

    name: str
    method: str
    gathered: float  # bytes a parameter that all-gathers bring to every GPU
    reduced: float  # bytes a parameter that reduce-scatters take from it; an all-reduce is one of each
    why: str


WAYS = (
    Way("lora, ddp", "lora", 4, 4, "all-reduce of the adapters' gradients, fp32"),
    Way("full, ddp", "full", 2, 2, "all-reduce of all gradients, bf16"),
    Way("full, fsdp", "full", 4, 4, "weights gathered in bf16 forward and backward, gradients reduced in fp32"),
    Way("full, deepspeed-zero2", "full", 2, 2, "gradients reduced in bf16, updated weights gathered in bf16"),
    Way("full, deepspeed-zero3", "full", 4, 2, "weights gathered in bf16 forward and backward, gradients reduced in bf16"),
)


@dataclass(frozen=True)
class Scaled:
    """One way on all GPUs. Times in ms; shares of 16 times the rate of one GPU, where nothing or all of the sending is hidden."""

    case: str
    way: Way
    step_ms: float
    sent_mb: float
    sending_ms: float
    none_hidden: float
    all_hidden: float
    needed_gb_s: float
    tokens_per_s: float


def adapters(shape: Shape, rank: int = RANK) -> int:
    """Parameters of LoRA on all linear layers of a decoder."""
    wide, narrow = shape.hidden_size, shape.hidden_size // shape.num_attention_heads * shape.num_key_value_heads
    sides = [(wide, wide), (wide, narrow), (wide, narrow), (wide, wide), *[(wide, shape.intermediate_size)] * 3]
    return shape.num_hidden_layers * rank * sum(one + other for one, other in sides)


def sent_bytes(shape: Shape, way: Way, gpus: int = GPUS) -> float:
    """Bytes that each link of a ring over `gpus` carries in a step: (n - 1) / n of what is gathered and of what is reduced."""
    parameters = adapters(shape) if way.method == "lora" else shape.parameters
    return parameters * (way.gathered + way.reduced) * (gpus - 1) / gpus


def slowest_link() -> float:
    """GB/s of a ring: it is as fast as the slowest link that it crosses."""
    return min(LINKS_GB_S.values())


def scaled(rows: Rows, model: str, way: Way, gb_s: float | None = None) -> Scaled | None:
    """One way on 16 GPUs, with the measured step of one; None where that was not measured."""
    found = rates(rows, model, way.method, OURS)
    if not found:
        return None
    batch, rate = STATED[model, way.method][0], statistics.median(found)
    step = 1e3 * batch * LENGTH / rate
    sent = sent_bytes(SHAPES[model], way)
    sending = sent / ((gb_s or slowest_link()) * 1e6)
    hidden = step / max(step, sending)
    return Scaled(
        case=f"{model} b{batch}",
        way=way,
        step_ms=step,
        sent_mb=sent / 1e6,
        sending_ms=sending,
        none_hidden=step / (step + sending),
        all_hidden=hidden,
        needed_gb_s=sent / step / 1e6,
        tokens_per_s=GPUS * rate * hidden,
    )


def every(rows: Rows) -> list[Scaled]:
    """All ways of all cases that were measured."""
    return [found for model, method in STATED for way in WAYS if way.method == method and (found := scaled(rows, model, way))]


def page(kept: Mapping[str, Any] | None) -> str:
    """docs/scaling.md; without measured figures it has none."""
    return "\n".join((*_method(), *(_figures(kept["rows"]) if kept else _none()))) + "\n"


def _none() -> Iterator[str]:
    yield "No figures yet: `benchmarks/results/training.json` is not there."


def _method() -> Iterator[str]:
    yield "# 16 GPUs on paper\n"
    yield "What two nodes with 8 GPUs each would make of the rates that were measured on one GPU ([training](benchmarks.md))."
    yield "NOT MEASURED on 16 GPUs: `benchmarks/training/scaling.py` computes it from the measured step of one GPU, and"
    yield "`python -m acceptance.sixteen_gpus_on_paper` holds this page to it.\n"
    yield f"- Each GPU keeps its batch, so {GPUS} times the tokens of one is 100%."
    yield "- A step sends what the table below says, over a ring of all GPUs; each of its links carries 15/16 of what is gathered"
    yield "  and of what is reduced."
    links = "; ".join(f"{name}: {rate:.1f} GB/s" for name, rate in LINKS_GB_S.items())
    yield f"- A ring is as fast as its slowest link, which [gates](gates.md) measure. Assumed are {REACHED:.0%} of the line rates:"
    yield f"  {links}."
    yield "- Two bounds: nothing of the sending is hidden behind computing, or all that fits. Reality lies between: gradients are"
    yield "  sent while the backward pass goes on, and weights are gathered one layer ahead.\n"
    yield "| way | bytes a parameter gathered + reduced | what it sends |\n|---|---|---|"
    for way in WAYS:
        of = "trained parameter" if way.method == "lora" else "parameter"
        yield f"| {way.name} | {way.gathered:g} + {way.reduced:g} a {of} | {way.why} |"
    yield ""


def _figures(rows: Rows) -> Iterator[str]:
    found = every(rows)
    yield "## What is expected\n"
    yield (
        "| case | way | step of one GPU, ms | sent a step, MB | sending, ms | scaling, nothing hidden | all hidden "
        "| tokens/s of 16, all hidden |\n|---|---|---|---|---|---|---|---|"
    )
    for one in found:
        yield (
            f"| {one.case} | {one.way.name} | {one.step_ms:.0f} | {one.sent_mb:,.0f} | {one.sending_ms:.0f} "
            f"| {one.none_hidden:.0%} | {one.all_hidden:.0%} | {one.tokens_per_s:,.0f} |"
        )
    yield "\n## The assumption that it hangs on\n"
    yield "The bus bandwidth of a ring over all GPUs, which the gate `nccl-cluster` measures. Below is what is"
    yield "needed to hide all sending, and what is left with less.\n"
    yield f"| case | way | GB/s needed | {' | '.join(f'{rate:g} GB/s' for rate in SLOW_GB_S)} |"
    yield "|---" * (3 + len(SLOW_GB_S)) + "|"
    for one in found:
        less = [scaled(rows, one.case.split()[0], one.way, rate) for rate in SLOW_GB_S]
        yield f"| {one.case} | {one.way.name} | {one.needed_gb_s:.1f} | {' | '.join(f'{x.all_hidden:.0%}' for x in less if x)} |"
    yield "\nThe steps are those of an H200. A slower card takes longer for its step, sends as much, and scales better: one whose"
    yield "step takes twice as long needs half the GB/s."


def main() -> int:
    PAGE.write_text(page(json.loads(RAW.read_text()) if RAW.exists() else None), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
