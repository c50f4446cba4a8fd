"""Nearest names."""

from __future__ import annotations

import time

import pytest

from reconciler.model.words import nearest


@pytest.mark.parametrize(
    ("word", "allowed", "near"),
    [
        ("drivers", ["extends", "driver"], "driver"),
        ("known_hosts", ["knownHosts", "port"], "knownHosts"),
        ("zero3", ["ddp", "fsdp", "deepspeed-zero3"], "deepspeed-zero3"),
        ("stack-2026.1", ["stack-2026.12", "stack-2026.11"], "stack-2026.11"),
        ("tmux", ["htop", "numactl"], None),
        ("", ["a"], None),
        ("\u0442mux" * 50, ["tmux"], None),
        ("ab", ["abcdefgh"], None),
    ],
)
def test_nearest(word: str, allowed: list[str], near: str | None) -> None:
    assert nearest(word, allowed) == near


def test_many_names_are_not_compared_one_by_one() -> None:
    names = [f"gpu{n:05d}" for n in range(10_000)]
    start = time.process_time()
    assert nearest("gpu00x42", names) is not None
    assert nearest("zzz", names) is None
    assert time.process_time() - start < 1.0
