"""Where the time of a step goes, by group of kernels, from torch's profiler; what no kernel fills is idle."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# The first that matches a kernel's name; attention comes before GEMM, for its kernels are named after the GEMMs in them.
GROUPS = (
    ("attention", re.compile(r"flash|fmha|sdpa|attention", re.IGNORECASE)),
    ("cross-entropy", re.compile(r"cross_entropy|element_mul|softmax|nll_loss", re.IGNORECASE)),
    ("GEMM", re.compile(r"gemm|nvjet|cutlass|cublas|wgmma|xmma|splitk|gemv", re.IGNORECASE)),
    ("optimiser", re.compile(r"multi_tensor|adam", re.IGNORECASE)),
    ("copies", re.compile(r"memcpy|memset", re.IGNORECASE)),
)
ELEMENTWISE, ADAPTER, IDLE = "elementwise and norms", "rank-{rank} GEMM", "idle"
_MATMULS = ("aten::mm", "aten::addmm", "aten::bmm")


def group(kernel: str) -> str:
    """The group of a kernel, from its name."""
    return next((name for name, pattern in GROUPS if pattern.search(kernel)), ELEMENTWISE)


def table(kernels: Iterable[tuple[str, float]], adapters_ms: float, wall_ms: float, rank: int) -> dict[str, float]:
    """Group -> ms of one step. `kernels` are names and ms; GEMMs of the adapters are `adapters_ms` of all GEMMs.

    What is left of `wall_ms` is idle: kernels of a training step run one after another on one stream.
    """
    found: dict[str, float] = defaultdict(float)
    for name, ms in kernels:
        found[group(name)] += ms
    found[IDLE] = wall_ms - sum(found.values())
    if adapters_ms:
        found["GEMM"] -= adapters_ms
        found[ADAPTER.format(rank=rank)] = adapters_ms
    return {name: round(ms, 2) for name, ms in sorted(found.items(), key=lambda item: -item[1])}


def adapter_matmul(name: str, shapes: Sequence[Sequence[int]], rank: int) -> bool:
    """Whether an operator is a matmul with the rank of the adapters as one of its sides."""
    return name in _MATMULS and any(rank in shape[-2:] for shape in shapes)


def summary(found: Any, rank: int, steps: int, most: int) -> dict[str, Any]:
    """Of a finished recording of `steps` steps: the table of groups, and the kernels that cost most, in ms a step."""
    import torch

    events = found.events()
    kernels = [event for event in events if event.device_type == torch.autograd.DeviceType.CUDA and not _annotation(event)]
    times: Mapping[str, float] = _sums((event.name, event.time_range.elapsed_us() / 1e3 / steps) for event in kernels)
    span = max(event.time_range.end for event in kernels) - min(event.time_range.start for event in kernels)
    adapters = sum(
        event.self_device_time_total / 1e3 / steps
        for event in events
        if event.device_type == torch.autograd.DeviceType.CPU and adapter_matmul(event.name, event.input_shapes or [], rank)
    )
    gaps = idle_gaps([(event.name, event.time_range.start, event.time_range.end) for event in kernels])
    costly = sorted(times.items(), key=lambda item: -item[1])[:most]
    return {
        "groups_ms": table(times.items(), adapters, span / 1e3 / steps, rank),
        "gaps_ms": [(round(us / 1e3 / steps, 3), before[:60], after[:60]) for us, before, after in gaps[:most]],
        "kernels_ms": {name[:120]: round(ms, 2) for name, ms in costly},
    }


def idle_gaps(kernels: Sequence[tuple[str, float, float]]) -> list[tuple[float, str, str]]:
    """Where nothing ran, longest first: how long, after which kernel and before which. `kernels`: name, begin, end."""
    found, last, until = [], "", float("inf")
    for name, begin, end in sorted(kernels, key=lambda kernel: kernel[1]):
        if begin > until:
            found.append((begin - until, last, name))
        if until == float("inf") or end > until:
            last, until = name, end
    return sorted(found, reverse=True)


def _annotation(event: Any) -> bool:
    """A range that somebody named (`Optimizer.step`), which the profiler shows on the device's line as well."""
    return bool(getattr(event, "is_user_annotation", False)) or event.name.startswith(("ProfilerStep", "Optimizer.", "## "))


def _sums(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for name, value in pairs:
        found[name] += value
    return found
