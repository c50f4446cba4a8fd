"""What gates make of what they saw: places, logs, reports, rates and losses, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.gates import bandwidth, frameworks, lora, one_gpu
from trainer.gates.ddp_node import placed, wrong_sums
from trainer.gates.group import Place
from trainer.gates.nccl_cluster import network_problems, networks
from trainer.gates.outcome import Failed, Outcome, Problem
from trainer.gates.runner import reporter

pytestmark = pytest.mark.train
REPORTS = Path(__file__).resolve().parents[2] / "data" / "corpus" / "ds-report"


def rank(number: int, host: str = "gpu01", gpu: str = "A100", uuid: str = "") -> dict[str, Any]:
    return {"rank": number, "host": host, "gpu": gpu, "uuid": uuid or f"GPU-{number}"}


PLACES: list[tuple[str, list[dict[str, Any]], int | None, int | None, list[tuple[str, tuple[int, ...]]]]] = [
    ("as declared", [rank(0), rank(1)], 2, 1, []),
    ("nothing declared", [rank(0), rank(1, "gpu02")], None, None, []),
    ("one GPU twice", [rank(0), rank(1, uuid="GPU-0")], 2, 1, [("GpuShared", (0, 1))]),
    ("too few", [rank(0)], 2, 1, [("WorldSize", (0,))]),
    ("uneven nodes", [rank(0), rank(1), rank(2, "gpu02")], 2, 2, [("WorldSize", (2,))]),
    ("one host of two", [rank(0), rank(1)], 2, 2, [("HostCount", ())]),
    ("other models", [rank(0), rank(1, gpu="A100 80GB PCIe")], 2, 1, [("GpuModelsDiffer", ())]),
]


@pytest.mark.parametrize(("name", "ranks", "gpus", "hosts", "expected"), PLACES, ids=[case[0] for case in PLACES])
def test_places(name: str, ranks: list[dict[str, Any]], gpus: int, hosts: int, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert [(problem.reason, problem.ranks) for problem in placed(ranks, gpus, hosts)] == expected


def test_wrong_sums_name_type_size_and_ranks() -> None:
    right, wrong = {"type": "int64", "elements": 7, "wrong": 0}, {"type": "int64", "elements": 7, "wrong": 3}
    assert wrong_sums([[right], [right]]) == []
    assert wrong_sums([[right], [wrong], [wrong]]) == [
        Problem("SumWrong", "all-reduce of 7 int64: up to 3 values are wrong", (1, 2))
    ]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("gpu01:9:9 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n", {"IB/GDRDMA": 1}),
        ("Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/0(1)/GDRDMA/Shared\n", {"IB/GDRDMA": 1}),
        ("[send] via NET/IB/1\n[receive] via NET/IB/1/GDRDMA", {"IB": 1, "IB/GDRDMA": 1}),
        ("[send] via NET/Socket/0\n[receive] via NET/Socket/0\n", {"Socket": 2}),
        ("NET/Socket : Using [0]eth0\nChannel 00/0 : 0[0] -> 1[1] via P2P/IPC\n", {}),
    ],
)
def test_networks_are_read_from_the_log(log: str, expected: dict[str, int]) -> None:
    assert networks(log) == expected


@pytest.mark.parametrize(
    ("said", "declared", "expected"),
    [
        ([{"IB/GDRDMA": 4}, {"IB/GDRDMA": 4}], "rdma", []),
        ([{"IB/GDRDMA": 4}, {"Socket": 4}], "rdma", [("NetworkIsTcp", (1,))]),
        ([{"IB": 2, "IB/GDRDMA": 2}, {"IB/GDRDMA": 4}], "rdma", [("NoGpuDirect", (0,))]),
        ([{}, {}], "rdma", [("NetworkUnseen", ())]),
        ([{"Socket": 4}, {"Socket": 4}], "tcp", []),
    ],
)
def test_the_network_is_the_declared_one(
    said: list[dict[str, int]], declared: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert [(problem.reason, problem.ranks) for problem in network_problems(said, declared)] == expected


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    found = bandwidth.measured(2**30, [{"seconds": 0.01, "wrong": 0}, {"seconds": 0.02, "wrong": 2}] * 4)
    assert found == {"bytes": 2**30, "time_us": 20000.0, "algbw_gb_s": 53.687, "busbw_gb_s": 93.952, "wrong": 8}


@pytest.mark.parametrize(
    ("best", "least", "baseline", "reasons"),
    [
        (200.0, 200.0, 220.0, []),
        (199.0, 200.0, 0.0, ["BandwidthBelowFloor"]),
        (197.9, 0.0, 220.0, ["BandwidthBelowBaseline"]),
        (10.0, 200.0, 220.0, ["BandwidthBelowFloor", "BandwidthBelowBaseline"]),
        (0.0, 0.0, 0.0, []),
    ],
)
def test_floors(best: float, least: float, baseline: float, reasons: list[str]) -> None:
    assert [problem.reason for problem in bandwidth.too_slow(best, least, baseline)] == reasons


@pytest.mark.parametrize(("text", "bytes_"), [("8", 8), ("512K", 512 * 2**10), ("4G", 4 * 2**30)])
def test_sizes_are_those_of_nccl_tests(text: str, bytes_: int) -> None:
    assert bandwidth.size(text) == bytes_
    assert bandwidth.sizes(bytes_)[-1] == bytes_


REPORT = {
    "ansi-colours": {"torch": "2.1.2+cu121", "cuda": "12.1", "deepspeed": "0.14.0", "async_io": "NO"},
    "python-m-variant-libaio-missing": {"async_io": "NO"},
}


@pytest.mark.parametrize("name", REPORT)
def test_the_report_of_deepspeed_is_understood(name: str) -> None:
    assert frameworks.understood((REPORTS / f"{name}.txt").read_text(encoding="utf-8")) == REPORT[name]


def test_a_report_of_other_versions_is_told() -> None:
    told = {"torch": "2.13.0", "deepspeed": "0.19.8"}
    assert frameworks.disagreements(told, {"torch": "2.13.0", "deepspeed": "0.19.8"}) == []
    found = frameworks.disagreements(told, {"torch": "2.12.0", "cuda": "13.0"})
    assert [problem.reason for problem in found] == ["DsReportDiffers", "DsReportUnclear"]


def test_steps_that_differ_or_do_nothing_are_told() -> None:
    same, other, idle = {"off": 0.0, "moved": 0.1}, {"off": 0.1, "moved": 0.1}, {"off": 0.0, "moved": 0.0}
    assert frameworks.different({"ddp": [same, same], "fsdp": [same, same]}) == []
    found = frameworks.different({"ddp": [same, same], "fsdp": [same, other], "zero": [{"off": float("nan")}, same]})
    assert [(problem.reason, problem.ranks) for problem in found] == [("StepDiffers", (1,)), ("StepDiffers", (0,))]
    assert [problem.reason for problem in frameworks.different({"ddp": [idle]})] == ["StepDidNothing"]


@pytest.mark.parametrize(
    ("first", "last", "adapters", "expected"),
    [
        (5.0, 1.0, ["a", "a"], []),
        (5.0, 4.9, ["a", "a"], [("LossDidNotFall", ())]),
        (5.0, float("nan"), ["a", "a"], [("LossDidNotFall", ())]),
        (5.0, 1.0, ["a", "b", "a", "b"], [("RanksDiffer", (1, 3))]),
    ],
)
def test_losses_and_adapters(first: float, last: float, adapters: list[str], expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert [(problem.reason, problem.ranks) for problem in lora.judged(first, last, adapters)] == expected


@pytest.mark.parametrize(
    ("rates", "least", "expected"),
    [
        ([(250, 1e-3), (255, 1e-3)], 200.0, []),
        ([(250, 1e-3), (150, 1e-3)], 200.0, ["MatmulSlow"]),
        ([(250, 1e-3), (250, 1e-3), (190, 1e-3)], 0.0, ["GpuSlowerThanPeers"]),
        ([(250, 0.5)], 0.0, ["ProductWrong"]),
        ([(250, float("nan"))], 0.0, ["ProductWrong"]),
    ],
)
def test_products(rates: list[tuple[float, float]], least: float, expected: list[str]) -> None:
    measured = [{"device": f"cuda:{n}", "tflops": tflops, "error": error} for n, (tflops, error) in enumerate(rates)]
    assert [problem.reason for problem in one_gpu.rates(measured, least)] == expected


def test_pins_of_a_requirements_file() -> None:
    text = "# comment\n--hash=x\ntorch==2.13.0\npillow==13.0.0 ; python_version > '3'\nfree>=1\n"
    assert one_gpu.pins(text) == {"torch": "2.13.0", "pillow": "13.0.0"}


@pytest.mark.parametrize(("absent", "expected"), [((), 0), ((1,), 0), ((0,), 1), ((0, 1), 2)])
def test_the_lowest_rank_that_is_there_tells(absent: tuple[int, ...], expected: int) -> None:
    assert reporter(3, [Problem("RankMissing", "", absent), Problem("SumWrong", "", (2,))]) == expected


@pytest.mark.parametrize("world", ["0", "two"])
def test_a_launch_that_cannot_be_meant_is_refused(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": world, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Failed) as refused:
        Place.from_environment()
    assert refused.value.problems[0].reason == "LaunchUnclear"


def test_a_result_is_one_value_for_json() -> None:
    outcome = Outcome("ddp-node", problems=[Problem("SumWrong", "words", (1,))], evidence={"world": 2})
    assert outcome.data() == {
        "gate": "ddp-node",
        "verdict": "failed",
        "stand_in": "",
        "problems": [{"reason": "SumWrong", "what": "words", "ranks": (1,)}],
        "evidence": {"world": 2},
    }
