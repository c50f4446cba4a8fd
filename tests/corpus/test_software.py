"""What the corpus does not show, or shows as `explained`: answers that are no value, and rows that take no others along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Fact, Unknown, Value

CORPUS = Path(__file__).parent.parent / "data" / "corpus"


def sample(name: str) -> str:
    (found,) = (p for p in CORPUS.glob(f"{name}.*") if not p.name.endswith(".meta.yaml"))
    return found.read_bytes().decode("utf-8", "replace")


def value(name: str, text: str) -> Any:
    found = FORMATS[name](text)
    assert isinstance(found, Value)
    return plain(found)


def answer(found: Fact[Any]) -> str:
    return (
        f"Unknown({found.why})"
        if isinstance(found, Unknown)
        else f"Absent({found.reason})"
        if isinstance(found, Absent)
        else "Value"
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("chronyc", "506 Cannot talk to daemon\n", "Unknown(DaemonDown)"),
        ("chronyc", "bash: chronyc: command not found\n", "Absent(NotInstalled)"),
        ("chronyc", "", "Unknown(NotTracking)"),
        ("rpm-qa", "", "Unknown(EmptyDatabase)"),
        ("rpm-qa", "error: cannot open Packages database in /var/lib/rpm\n", "Unknown(DatabaseDamaged)"),
        ("df", "", "Unknown(NoTable)"),
        ("df", "Filesystem 1K-blocks Used Available Use% Mounted on\n", "Unknown(NoRows)"),
        ("pip", "", "Unknown(NothingListed)"),
        ("pip", "sh: pip: not found\n", "Absent(NotInstalled)"),
        (
            "slurm",
            "slurm_load_node error: Unable to contact slurm controller (connect failure)\n",
            "Unknown(ControllerUnreachable)",
        ),
        ("slurm", "Node cg99 not found\n", "Absent(NoSuchNode)"),
        ("slurm", '{"nodes": [', "Unknown(NotJson)"),
        ("nccl-log", "step 1 loss 2.0\n", "Unknown(NoNcclLines)"),
        ("nccl-tests", "", "Unknown(NoTest)"),
        ("collect-env", "Collecting environment information...\n", "Unknown(NoReport)"),
        ("torchrun", "step 1 loss 2.0\n", "Unknown(NoReport)"),
        ("ds-report", "bash: ds_report: command not found\n", "Absent(NotInstalled)"),
        ("vllm-metrics", "process_cpu_seconds_total 12\n", "Absent(NoVllmMetrics)"),
        ("vllm-metrics", "vllm:num_requests_running{engine=\n", "Unknown(UnreadableLine)"),
        ("dcgm-metrics", "process_cpu_seconds_total 12\n", "Absent(NoDcgmMetrics)"),
        ("dcgm-metrics", "<html>502 Bad Gateway</html>\n", "Unknown(NotMetrics)"),
    ],
)
def test_what_is_no_value(name: str, text: str, expected: str) -> None:
    assert answer(FORMATS[name](text)) == expected


def test_an_offset_of_zero_without_a_source_is_not_in_sync() -> None:
    lost = value("chronyc", sample("chronyc/lost-source-stratum3-epoch"))
    assert (lost["synced"], lost["system_offset_s"], lost["reference_id"]) == (False, 0.0, "00000000")
    own = sample("chronyc/synced-normal-hostname").replace("83E17991 (ntp.example.org)", "7F7F0101 ()")
    assert value("chronyc", own)["synced"] is False


def test_a_clock_whose_leap_status_is_cut_off_is_unknown() -> None:
    cut = sample("chronyc/synced-normal-hostname").partition("Leap")[0]
    assert value("chronyc", cut)["synced"] == {"unknown": "NoLeapStatus", "detail": ""}


@pytest.mark.parametrize("name", ["rpm-qa/rpmdb-error-line", "rpm-qa/garbage-line"])
def test_a_package_list_with_a_hole_says_so(name: str) -> None:
    found = value("rpm-qa", sample(name))
    assert found["packages"]
    assert found["complete"] is False


def test_epochs_and_wrapped_lines_of_dnf() -> None:
    wrapped = "very-long-name-of-a-package.noarch\n                 3:1.0-2.el9      @cuda\n"
    text = f"Installed Packages\n{wrapped}bash.x86_64  5.1.8-9.el9  @anaconda\n"
    found = value("rpm-qa", text)["packages"]
    assert [(p["name"], p["epoch"], p["full"]) for p in found] == [
        ("very-long-name-of-a-package", 3, "1.0-2.el9"),
        ("bash", {"absent": "NoEpoch"}, "5.1.8-9.el9"),
    ]


def test_our_own_query_and_rpm_q_are_read_too() -> None:
    found = value("rpm-qa", "bash\t0\t5.1.8\t9.el9\tx86_64\npackage vim is not installed\n")
    assert (found["versions"], found["missing"]) == ({"bash": ["5.1.8-9.el9"]}, ["vim"])


def test_df_keeps_a_bad_row_in_its_place_and_does_not_say_what_is_full() -> None:
    found = value("df", sample("df/df-al-bad"))
    assert found["rows"][0]["bytes"]["used"] == 4244032 * 1024
    assert found["rows"][1]["unknown"] == "UnreadableRow"
    assert found["full"] == {"unknown": "UnreadRows", "detail": ""}


def test_df_counts_inodes_apart_and_keeps_blanks_in_mount_points() -> None:
    rows = value("df", sample("df/df-li-inodes"))["rows"]
    assert rows[0]["inodes"]["total"] == 6275072
    assert "unknown" in rows[0]["bytes"]
    assert [row["mounted_on"] for row in rows[-2:]] == ["/V M T o o l s", "/VM Tools"]


def test_df_sizes_for_people_and_types() -> None:
    assert value("df", sample("df/df-h-centos"))["rows"][0]["bytes"]["total"] == round(1.9 * 1024**3)
    row = value("df", sample("df/df-PT-long"))["rows"][1]
    assert (row["source"], row["type"], row["used_percent"]) == ("proc", "proc", {"absent": "NotApplicable"})


def test_pip_editable_forms() -> None:
    mine = "# Editable install with no version control (mine==1.0)\n-e /src/mine\n"
    text = f"{mine}-e git+https://h/x.git@abc#egg=Other_one\n-e /nothing\n"
    found = value("pip", text)
    assert found["editable"] == ["mine", "other-one"]
    assert (found["version_unknown"], found["git"], len(found["unread"])) == (["other-one"], ["other-one"], 1)


def test_slurm_marks_become_words_and_reasons_are_taken_apart() -> None:
    assert value("slurm", "n1,down*\n")["nodes"][0]["states"] == ["DOWN", "NOT_RESPONDING"]
    drained = value("slurm", sample("slurm/scontrol-drain-gres-count-lower"))["nodes"][0]
    assert (drained["reason_by"], drained["reason_at"], drained["memory_mib"]) == ("slurm", "2024-12-19T11:03:34", 1)


def test_slurm_json_of_newer_releases() -> None:
    node = {"name": "n1", "state": ["IDLE", "DRAIN"], "free_mem": {"set": True, "number": 5}}
    text = json.dumps({"meta": {"slurm": {"release": "24.05.1"}}, "nodes": [node, 7]})
    found = value("slurm", text)
    assert (found["version"], found["nodes"][0]["states"], found["nodes"][0]["free_memory_mib"]) == (
        "24.05.1",
        ["IDLE", "DRAIN"],
        5,
    )
    assert found["nodes"][1]["unknown"] == "NoName"


def test_nccl_names_a_completion_error_in_numbers() -> None:
    found = value("nccl-log", sample("nccl-log/ib-completion-error12-vendor129"))
    assert found["completions"] == [{"peer": "10.0.0.3<33092>", "status": 12, "vendor_error": 129}]
    assert value("nccl-log", sample("nccl-log/dev-shm-too-small"))["versions"] == ["2.18.1+cuda11.0", "2.19.3+cuda11.0"]


def test_nccl_test_without_summary_or_validation() -> None:
    text = sample("nccl-tests/gcm-0").partition("# Out of bounds")[0]
    assert value("nccl-tests", text)["avg_busbw_gb_s"]["unknown"] == "Missing"
    row = value("nccl-tests", sample("nccl-tests/dstack-gcp-validation0-NA"))["rows"][0]
    assert (row["out_of_place"]["wrong"], row["out_of_place"]["busbw_gb_s"]) == ({"absent": "NotValidated"}, 47.19)
    old = value("nccl-tests", sample("nccl-tests/deepops-dgxa100-error-column"))["rows"][0]
    assert (old["in_place"]["error"], old["root"]) == (7e-7, {"absent": "NoSuchColumn"})


def test_a_cut_torchrun_report_has_no_root() -> None:
    cut = sample("torchrun/two-followers-root-rank0").partition("Root Cause")[0]
    found = value("torchrun", cut)
    assert (len(found["failures"]), found["root"]) == (2, {"unknown": "Missing", "detail": "Root Cause"})


def test_collect_env_says_three_answers() -> None:
    assert value("collect-env", sample("collect-env/a100pcie"))["cuda_available"] is True
    assert value("collect-env", sample("collect-env/torch-not-installed"))["cuda_available"] == {"absent": "NotApplicable"}
    cut = value("collect-env", sample("collect-env/driver-too-old-warning-before-env"))
    assert (cut["complete"], cut["gpu_count"]["unknown"]) == (False, "Missing")
    assert value("collect-env", sample("collect-env/mig-jetson-or-mig"))["mig_profiles"] == ["3g.40gb"]
    assert len(value("collect-env", sample("collect-env/cudnn-many"))["cudnn"]) == 7


def test_metrics_that_are_not_there_or_not_numbers_are_not_zero() -> None:
    old = value("vllm-metrics", sample("vllm-metrics/v0-old-names"))["engines"][0]
    assert (old["waiting"]["unknown"], old["prompt_tokens"]["unknown"]) == ("NotExported", "NotExported")
    nan = value("dcgm-metrics", 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",gpu="0"} NaN\nDCGM_FI_DEV_XID_ERRORS{UUID="GPU-1"} 79\n')[
        "gpus"
    ][0]
    assert (nan["values"]["DCGM_FI_DEV_GPU_TEMP"]["unknown"], nan["last_xid"]) == ("NotANumber", 79)


def test_labels_hold_what_looks_like_syntax() -> None:
    text = 'vllm:num_requests_running{model_name="a\\"b}, c=\\"d",engine="1"} 2 1700000000000\n'
    found = value("vllm-metrics", text)["engines"][0]
    assert (found["model"], found["engine"], found["running"]) == ('a"b}, c="d', "1", 2.0)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("vllm-metrics", 'vllm:num_requests_running{engine="0"} 24', "Unknown(NoLineEnd)"),
        ("dcgm-metrics", 'DCGM_FI_DEV_XID_ERRORS{UUID="GPU-1"} 7', "Unknown(NoLineEnd)"),
        ("pip", "torch==2.6.", "Unknown(NoLineEnd)"),
        ("rpm-qa", "bash-5.1.8-9", "Unknown(NoLineEnd)"),
        ("slurm", "n1,down", "Unknown(NoLineEnd)"),
        ("nccl-tests", "# Avg bus bandwidth    : 11", "Unknown(NoLineEnd)"),
    ],
)
def test_a_line_without_end_may_be_cut_and_is_not_believed(name: str, text: str, expected: str) -> None:
    assert answer(FORMATS[name](text)) == expected


def test_what_is_cut_takes_nothing_else_along() -> None:
    assert value("pip", "torch==2.6.0\nvllm==0.8")["packages"].keys() == {"torch"}
    assert value("pip", '[{"name": "torch", "version": "2.6.0"}]')["count"] == 1
    cut = value("rpm-qa", "bash-5.1.8-9.el9.x86_64\nkernel-5.14.0-4")
    assert (list(cut["versions"]), cut["complete"]) == (["bash"], False)
    rows = value("df", sample("df/df-h-centos").rstrip("\n"))["rows"]
    assert (len(rows), rows[-1]["unknown"]) == (7, "NoLineEnd")


def test_names_are_split_from_the_right_and_dates_left_out() -> None:
    old = value("rpm-qa", sample("rpm-qa/no-arch-compat-names"))
    assert (len(old["packages"]), old["complete"]) == (36, True)
    assert old["versions"]["compat-libstdc++-33"] == ["3.2.3-47.3", "3.2.3-61", "3.2.3-69.el6", "3.2.3-72.el7"]
    assert old["versions"]["flash-plugin"][0] == "11.2.202.635-release"
    dated = value("rpm-qa", sample("rpm-qa/wide-date-column-gpg-pubkey"))
    assert (len(dated["packages"]), len(dated["keys"]), dated["complete"]) == (14, 1, True)
    assert dated["versions"]["vmware-tools"] == ["8.3.19-1310361.el6"]
