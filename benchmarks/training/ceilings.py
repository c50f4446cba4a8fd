"""What the card itself can do now, which a training step is held against. Sustained rates: a card slows down when it is hot."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.baselines.shapes import SHAPES

SIDE, SUSTAINED_S, BURSTS = 8192, 4.0, 10


def measure(model: str, device: str, length: int) -> dict[str, Any]:
    """bf16 matmul in TFLOP/s in a burst and sustained, copy in TB/s (read and written), attention by kernel."""
    import torch

    if device == "cpu":
        return {"stand_in": True, "matmul_burst_tflops": _matmul(device, 256, 0.05)[0], "versions": versions()}
    burst, sustained = _matmul(device, SIDE, SUSTAINED_S)
    return {
        "device_name": torch.cuda.get_device_name(0),
        "driver_memory_gib": round(torch.cuda.mem_get_info()[1] / 2**30, 1),
        "matmul_burst_tflops": burst,
        "matmul_sustained_tflops": sustained,
        "copy_tb_per_s": _copy(),
        "attention_tflops": _attention(model, length),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of everything that the figures depend on; what is not installed is left out."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in ("torch", "triton", "transformers", "trl", "peft", "accelerate", "datasets", "liger-kernel"):
        if any(True for _ in metadata.distributions(name=name)):
            found[name] = metadata.version(name)
    return found


def _matmul(device: str, side: int, seconds: float) -> tuple[float, float]:
    import torch

    one, other = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    flops = 2 * side**3
    burst = flops / _seconds(lambda: one @ other, device, BURSTS) / 1e12
    began, sustained = time.perf_counter(), 0.0
    while time.perf_counter() - began < seconds:
        sustained = flops / _seconds(lambda: one @ other, device, 20 * BURSTS if device == "cuda" else 1) / 1e12
    return round(burst, 1), round(sustained, 1)


def _copy() -> float:
    import torch

    source = torch.empty(2**32, device="cuda", dtype=torch.uint8).random_()
    target = torch.empty_like(source)
    return round(2 * 2**32 / _seconds(lambda: target.copy_(source), "cuda", BURSTS) / 1e12, 2)


def _attention(model: str, length: int) -> dict[str, list[float]]:
    """By SDPA's kernel, and as SDPA chooses itself: forward and backward in TFLOP/s, causal counted half, backward 2.5 forward."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as attend

    shape, batch = SHAPES[model], 4
    heads, size = shape.num_attention_heads, shape.hidden_size // shape.num_attention_heads
    q, k, v, grad = (torch.randn(batch, heads, length, size, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    flops = 2 * batch * heads * length**2 * size
    found = {}
    kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    for name, allowed in {"chosen": [*kinds, SDPBackend.MATH], **{kind.name.lower(): [kind] for kind in kinds}}.items():
        with sdpa_kernel(allowed):
            out = attend(*leaves, is_causal=True)
            forward = _seconds(lambda: attend(*leaves, is_causal=True), "cuda", BURSTS)
            back = _seconds(partial(torch.autograd.grad, out, leaves, grad, retain_graph=True), "cuda", BURSTS)
        found[name] = [round(flops / forward / 1e12, 1), round(2.5 * flops / back / 1e12, 1)]
    return found


def _seconds(work: Callable[[], Any], device: str, times: int) -> float:
    """Mean of one of `times` calls after one that does not count."""
    import torch

    work()
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    began = time.perf_counter()
    for _ in range(times):
        work()
    wait()
    return (time.perf_counter() - began) / times
