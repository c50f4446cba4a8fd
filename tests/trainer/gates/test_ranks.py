"""Gates on two ranks of gloo: they pass, and a rank that is missing, late, broken or wrong is told by its number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.gates.launch import Told, environment, launched, lonely, told

pytestmark = pytest.mark.train
FAULTY = str(Path(__file__).with_name("faulty.py"))


def gate(stage: str, *options: str) -> tuple[str, ...]:
    return ("-m", "trainer.gates", stage, "--cpu", "--patience", "60", *options)


def test_a_node_passes() -> None:
    found = launched(*gate("ddp-node", "--gpus", "2"))
    assert (found.status, found.outcome["verdict"], found.problems) == (0, "passed", [])
    assert found.outcome["stand_in"].startswith("STAND-IN: no GPU here")
    evidence = found.outcome["evidence"]
    assert [(rank["rank"], rank["local_rank"]) for rank in evidence["ranks"]] == [(0, 0), (1, 1)]
    assert {(one["type"], one["wrong"]) for one in evidence["sums"]} == {("int64", 0), ("float32", 0), ("bfloat16", 0)}


def test_bandwidth_is_measured_and_held_against_the_floor() -> None:
    found = launched(*gate("nccl-node", "--gpus", "2", "--largest", "4K", "--least-busbw", "100000"))
    assert (found.status, found.problems) == (1, [("BandwidthBelowFloor", [])])
    rows = found.outcome["evidence"]["sizes"]
    assert [row["bytes"] for row in rows] == [8 * 2**n for n in range(10)]
    assert all(row["wrong"] == 0 and row["time_us"] > 0 for row in rows)


def test_every_engine_takes_the_same_step() -> None:
    found = launched(*gate("frameworks"))
    assert (found.status, found.problems) == (0, []), found.stderr[-2000:]
    steps = found.outcome["evidence"]["steps"]
    assert {name: step["how"] for name, step in steps.items()} == {
        "ddp": "DistributedDataParallel",
        "fsdp": "every weight a DTensor",
        "deepspeed-zero2": "DeepSpeedEngine of stage 2",
        "deepspeed-zero3": "DeepSpeedEngine of stage 3",
    }
    assert found.outcome["evidence"]["ds_report"]["deepspeed"] == found.outcome["evidence"]["versions"]["deepspeed"]


def test_lora_learns_the_small_set() -> None:
    found = launched(*gate("lora-cluster", "--hosts", "1", "--gpus", "2"))
    assert (found.status, found.problems) == (0, [])
    evidence = found.outcome["evidence"]
    assert evidence["last_loss"] < 0.2 * evidence["first_loss"]
    assert evidence["scaling"] > 0


FAULTS = [
    ("adds-wrong", ("ddp-node",), {("SumWrong", (1,))}),
    ("adds-wrong", ("nccl-node", "--largest", "64"), {("SumWrong", (1,))}),
    ("raises", ("ddp-node",), {("Broken", (1,))}),
    ("hangs", ("ddp-node",), {("RankLate", (0, 1))}),
]


@pytest.mark.parametrize(("fault", "stage", "expected"), FAULTS, ids=[f"{fault}-{stage[0]}" for fault, stage, _ in FAULTS])
def test_a_fault_of_a_rank_is_told(fault: str, stage: tuple[str, ...], expected: set[tuple[str, tuple[int, ...]]]) -> None:
    patience = "6" if fault == "hangs" else "60"
    found = launched(FAULTY, fault, *stage, "--cpu", "--patience", patience)
    assert found.status == 1
    assert {(reason, tuple(ranks)) for reason, ranks in found.problems} == expected
    assert found.outcome["verdict"] == "failed"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_does_not_come_is_named(rank: int) -> None:
    found: Told = lonely(rank, 2, "-m", "trainer.gates", "ddp-node", "--cpu", "--patience", "3")
    assert (found.status, found.problems) == (1, [("RankMissing", [1 - rank])])
    assert f"rank {1 - rank}" in found.outcome["problems"][0]["what"]


def test_a_cpu_takes_the_place_of_a_gpu_only_where_that_is_said() -> None:
    found = told((sys.executable, "-m", "trainer.gates", "ddp-node"))
    assert (found.status, found.problems) == (1, [("GpuMissing", [0])])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("dpp-node",), "did you mean 'ddp-node'?"),
        ((), "these are: torch, ddp-node"),
        (("nccl-node", "--largest", "4T"), "'4T' is no size in whole floats"),
        (("nccl-cluster",), "required: --hosts"),
        (("ddp-node", "--patience", "-1"), "'-1' is not a positive number"),
        (("torch", "--lock", "/nowhere.txt"), "there is no file /nowhere.txt"),
    ],
)
def test_a_wrong_call_says_what_is_allowed(words: tuple[str, ...], why: str) -> None:
    argv = (sys.executable, "-m", "trainer.gates", *words)
    done = subprocess.run(argv, env=environment(), check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_one_gpu_is_judged_by_its_lock(tmp_path: Path) -> None:
    import torch

    lock = tmp_path / "lock.txt"
    lock.write_text(f"# pins\ntorch=={torch.__version__.partition('+')[0]}\nnumpy==0.0.1\nno-such-package==1.0\n")
    found = told((sys.executable, "-m", "trainer.gates", "torch", "--cpu", "--lock", str(lock), "--least-tflops", "1e6"))
    assert [reason for reason, _ in found.problems] == ["PackageVersion", "PackageMissing", "MatmulSlow"]
    assert found.outcome["evidence"]["matmul"][0]["error"] < 1e-2
