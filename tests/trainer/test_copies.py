"""Copies of what is saved: independent of what training does next, as they were shared, in buffers that are used again."""

from __future__ import annotations

from typing import Any

import pytest

from trainer import copies

pytestmark = pytest.mark.train


def state() -> dict[str, Any]:
    import torch

    shared = torch.arange(6.0).reshape(2, 3)
    return {
        "embed": shared,
        "head": shared,
        "part": shared[0],
        "groups": [{"lr": 0.5, "params": [0, 1]}],
        "step": (torch.tensor(3),),
    }


def test_a_copy_keeps_its_values_while_training_changes_the_originals() -> None:
    given = state()
    copied = copies.Copies().of(given, "model")
    given["embed"].zero_()
    assert copied["embed"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert copied["groups"] == [{"lr": 0.5, "params": [0, 1]}]
    assert copied["step"][0].item() == 3


def test_what_shares_memory_still_shares_it_and_a_view_does_not() -> None:
    copied = copies.Copies().of(state(), "model")
    assert copied["embed"] is copied["head"]
    assert copied["part"].data_ptr() != copied["embed"].data_ptr()


def test_buffers_are_used_again_unless_the_shape_is_another() -> None:
    import torch

    kept = copies.Copies()
    first = kept.of({"a": torch.ones(3)}, "x")["a"]
    second = kept.of({"a": torch.zeros(3)}, "x")["a"]
    assert second is first
    assert first.tolist() == [0.0, 0.0, 0.0]
    assert kept.of({"a": torch.ones(4)}, "x")["a"].tolist() == [1.0] * 4
    assert kept.of({"a": torch.ones(3)}, "y")["a"] is not first


def test_sizes_are_of_all_tensors_inside() -> None:
    assert copies.size(state()) == (6 + 6 + 3) * 4 + 8
    assert copies.size({"lr": 0.1, "name": "x"}) == 0
    assert copies.available() > 2**20
