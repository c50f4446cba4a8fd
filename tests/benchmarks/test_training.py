"""Training on one GPU, without any: useful work, what is scheduled, groups of a profile, and the page from made-up calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baselines.plain import STATED
from benchmarks.baselines.shapes import SHAPES
from benchmarks.training import __main__ as call
from benchmarks.training import report, scaling
from benchmarks.training.cases import LOOPS, OURS, PLAIN, TRL, Measurement, holds, rates, schedule, tiny
from benchmarks.training.profiled import IDLE, adapter_matmul, group, idle_gaps, table


@pytest.mark.parametrize(("model", "parameters"), [("1.5b", 1_543_714_304), ("7.6b", 7_615_616_512)])
def test_shapes_have_the_published_number_of_parameters(model: str, parameters: int) -> None:
    assert SHAPES[model].parameters == parameters


@pytest.mark.parametrize(("case", "tflops"), [(("1.5b", "lora"), 175), (("7.6b", "lora"), 308), (("1.5b", "full"), 388)])
def test_useful_work_is_counted_as_where_the_plain_loop_was_stated(case: tuple[str, str], tflops: int) -> None:
    model, method = case
    assert round(STATED[case][1] * SHAPES[model].useful_flops(method, 4096) / 1e12) == tflops


@pytest.mark.parametrize("model", ["1.5b", "7.6b"])
def test_each_loop_is_measured_before_any_is_repeated(model: str) -> None:
    loops = [(one.method, one.loop, one.repeat) for one in schedule(model, 2) if one.loop and not one.packed]
    methods = [method for name, method in STATED if name == model]
    first = [(method, loop, 0) for method in methods for loop in LOOPS]
    assert loops[: 2 * len(first)] == first + [(method, loop, 1) for method, loop, _ in first]
    assert next(one.profile for one in schedule(model, 1) if one.loop == OURS) is True


def test_the_tiny_call_runs_every_program_on_a_cpu() -> None:
    found = tiny(1)
    assert {one.program for one in found} == {"ceilings", "steps", "exact"}
    assert {one.device for one in found} == {"cpu"}
    assert {(one.method, one.loop) for one in found if one.loop} == {(m, loop) for m in ("lora", "full") for loop in LOOPS}


KERNELS = [
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "attention"),
    ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "attention"),
    ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "GEMM"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "GEMM"),
    ("liger_cross_entropy_kernel", "cross-entropy"),
    ("element_mul_kernel", "cross-entropy"),
    ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimiser"),
    ("Memcpy DtoD (Device -> Device)", "copies"),
    ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "elementwise and norms"),
]


@pytest.mark.parametrize(("kernel", "expected"), KERNELS, ids=[kernel[:30] for kernel, _ in KERNELS])
def test_kernels_fall_into_groups(kernel: str, expected: str) -> None:
    assert group(kernel) == expected


def test_a_profile_comes_to_the_whole_step() -> None:
    found = table([("nvjet_a", 60.0), ("nvjet_b", 30.0), ("flash_fwd", 20.0), ("triton_poi", 10.0)], 12.0, 130.0, 16)
    assert found == {"GEMM": 78.0, "attention": 20.0, "rank-16 GEMM": 12.0, "elementwise and norms": 10.0, IDLE: 10.0}
    assert sum(found.values()) == 130.0


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("aten::mm", [[16384, 1536], [1536, 16]], True),
        ("aten::mm", [[16384, 1536], [1536, 8960]], False),
        ("aten::addmm", [[1536], [16, 16384], [16384, 1536]], True),
        ("aten::add", [[16, 16], [16, 16]], False),
        ("aten::mm", [], False),
    ],
)
def test_matmuls_of_adapters_are_told_apart(name: str, shapes: list[list[int]], expected: bool) -> None:
    assert adapter_matmul(name, shapes, 16) is expected


def row(model: str, method: str, loop: str, rate: float, repeat: int = 0, **more: Any) -> dict[str, Any]:
    known = {
        "program": "steps",
        "model": model,
        "method": method,
        "loop": loop,
        "repeat": repeat,
        "packed": False,
        "device": "cuda",
    }
    figures = {
        "batch": STATED[model, method][0],
        "tokens_per_s": rate,
        "useful_tflops": rate / 150,
        "peak_gib": 40.0,
        "step_ms": [99.0, 99.5, 100.0, 100.0, 100.0, 100.5, 190.0],
        "free_tokens_per_s": rate + 1,
    }
    return {**known, **figures, "profile": False, **more}


def made_up(plain: float = 25_000.0) -> dict[str, Any]:
    ceiling = {
        "program": "ceilings",
        "model": "1.5b",
        "method": "",
        "loop": "",
        "device": "cuda",
        "device_name": "A card",
        "packed": False,
        "matmul_burst_tflops": 790.0,
        "matmul_sustained_tflops": 650.0,
        "copy_tb_per_s": 4.2,
        "attention_tflops": {"chosen": [500.0, 400.0]},
        "versions": {"torch": "2.11.0"},
    }
    exact = {"gradient_error": 0.04, "first_loss_error": 1e-3, "largest_loss_error": 2e-3}
    check = {**ceiling, "program": "exact", "exact": {"lora ours": exact}}
    check["packed"] = {"sequences": 4, "largest_error": 1e-3, "changed_by_neighbour": 0.0}
    profile = {"groups_ms": {"GEMM": 140.0, "attention": 43.0, "idle": 20.0}, "kernels_ms": {}}
    rows = [
        ceiling,
        row("1.5b", "lora", PLAIN, plain),
        row("1.5b", "lora", TRL, 23_000.0),
        row("1.5b", "lora", OURS, 56_000.0, profile=profile),
        row("1.5b", "lora", PLAIN, plain, 1),
        row("1.5b", "lora", OURS, 54_000.0, 1),
        row("1.5b", "lora", OURS, 50_000.0, packed=True),
        {**row("1.5b", "full", PLAIN, 0.0), "tokens_per_s": None, "error": "exit 1", "said": "out of memory"},
        check,
    ]
    about = {"date": "2026-11-30", "frozen": "f0", "ours": "0a"}
    return {
        **about,
        "model": "1.5b",
        "stand_in": "",
        "rows": rows,
        "left_out": [{"key": "steps 1.5b", "repeat": 1, "why": "3 s were left"}],
    }


def test_a_ratio_is_of_medians_at_the_stated_batch() -> None:
    rows = [*made_up()["rows"], row("1.5b", "lora", OURS, 99_000.0, batch=8)]
    assert rates(rows, "1.5b", "lora", OURS) == [56_000.0, 54_000.0]
    assert report.ratio(rows, "1.5b", "lora", PLAIN) == pytest.approx(2.2)
    assert report.ratio(rows, "1.5b", "full", PLAIN) is None


@pytest.mark.parametrize(("measured", "held"), [(25_450, True), (24_200, True), (24_100, False), (26_800, False)])
def test_a_plain_loop_that_is_off_makes_the_ratio_void(measured: int, held: bool) -> None:
    assert holds("1.5b", "lora", measured) is held
    page = report.markdown(report.together([made_up(measured)]))
    assert ("1.5b lora: VOID" in page) is not held


def test_the_page_says_what_was_measured_and_what_was_not() -> None:
    page = report.markdown(report.together([made_up()]))
    assert "| 1.5b lora b4 | ours | 55,000 (56,000, 54,000) | 367 | 56% | 40 | 1.0% | 2.20 | 2.39 | 55,001 |" in page
    assert "- 1.5b lora: 2.20x the plain loop, at least 1.9x: held, aim 2.2x: reached; 2.39x TRL's defaults" in page
    assert "- 7.6b lora: not measured." in page
    assert "- Measured on 2026-11-30: plain loop f0, ours 0a (digests)." in page
    assert "| 1.5b lora | 140.0 | 43.0 | 20.0 | 203 |" in page
    assert "| 1.5b lora, idle, ms | 10 | 20.0 | +100% |" in page.split("held least comes first.")[1].split("\n")[4]
    assert "| lora ours | 4.0e-02 | 1.0e-03 | 2.0e-03 |" in page
    assert "- steps plain 1.5b: exit 1" in page
    assert "- steps 1.5b (repeat 1): 3 s were left" in page


def test_raw_results_survive_being_written() -> None:
    kept = report.together([made_up()])
    assert json.loads(report.as_json(kept)) == kept


class Calls:
    """Stands for the processes of a call: what each answers, and how long it takes."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def monotonic(self) -> float:
        return self.now

    def strftime(self, pattern: str) -> str:
        return "2026-11-30"

    def answer(self, wanted: Measurement) -> dict[str, Any]:
        self.now += self.seconds
        return {"tokens_per_s": 1.0, "useful_tflops": 1.0, "peak_gib": 1.0}


def test_what_does_not_fit_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Calls(50.0)
    monkeypatch.setattr(call, "time", clock)
    made = call.Call("1.5b", tmp_path, 175.0)
    monkeypatch.setattr(made, "_answer", clock.answer)
    for one in schedule("1.5b", 2)[:5]:
        made.run(one)
    kept = json.loads((tmp_path / "training-1.5b.json").read_text())
    assert [found["loop"] for found in kept["rows"]] == ["", *LOOPS][:3]
    assert [found["key"] for found in kept["left_out"]] == [one.key for one in schedule("1.5b", 2)[3:5]]
    assert call.missing(kept) == ["lora ours"]
    assert set(kept) >= {"date", "frozen", "ours", "seconds"}


def test_sixteen_gpus_are_computed_from_the_rate_of_one() -> None:
    way = next(way for way in scaling.WAYS if way.name == "lora, ddp")
    rows = [row("1.5b", "lora", OURS, 50_000.0), row("1.5b", "full", OURS, 50_000.0)]
    found = scaling.scaled(rows, "1.5b", way, gb_s=20.0)
    assert found is not None
    assert scaling.adapters(SHAPES["1.5b"]) == 18_464_768
    assert found.step_ms == pytest.approx(4 * 4096 / 50)
    assert found.sent_mb == pytest.approx(18.464768 * 8 * 15 / 16)
    assert found.sending_ms == pytest.approx(found.sent_mb / 20)
    assert found.none_hidden == pytest.approx(found.step_ms / (found.step_ms + found.sending_ms))
    assert (found.all_hidden, found.tokens_per_s) == (1.0, 800_000.0)
    slow = scaling.scaled(rows, "1.5b", way, gb_s=found.needed_gb_s / 2)
    assert slow is not None
    assert slow.all_hidden == pytest.approx(0.5)
    assert scaling.scaled([], "1.5b", way) is None


def test_the_page_of_sixteen_gpus_has_every_way_that_was_measured_or_says_that_none_was() -> None:
    rows = [row(*case, OURS, 50_000.0) for case in STATED]
    page = scaling.page({"rows": rows})
    assert all(f"| {way.name} |" in page for way in scaling.WAYS)
    assert "| 1.5b b4 | full, deepspeed-zero3 | 328 | 8,683 | 434 |" in page
    assert "No figures yet" in scaling.page(None)


def test_gaps_are_between_the_end_of_all_and_the_next_beginning() -> None:
    kernels = [("c", 30.0, 35.0), ("a", 0.0, 10.0), ("b", 2.0, 4.0), ("d", 36.0, 37.0)]
    assert idle_gaps(kernels) == [(20.0, "a", "c"), (1.0, "c", "d")]


def test_one_disturbed_step_does_not_count_as_spread() -> None:
    assert report.spread({"step_ms": [100.0, 101.0, 100.0, 100.0, 101.0, 100.0, 150.0]}) == pytest.approx(0.01)
