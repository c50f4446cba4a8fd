"""Tests side by side: a lab for each process, fixtures that are shared stay together, and what a lane runs with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import Lab, LabConfig
from tests import labfixture
from tools import lanes


@pytest.fixture(scope="module")
def common() -> str:
    return "made once for this module"


def test_tests_that_share_a_fixture_stay_in_one_process(common: str, request: pytest.FixtureRequest) -> None:
    assert labfixture.shared(request.node) == "test_lanes:common"


def test_a_test_that_shares_none_may_run_anywhere(request: pytest.FixtureRequest) -> None:
    assert labfixture.shared(request.node) == ""


@pytest.mark.parametrize(
    ("worker", "name", "subnet"), [("gw0", "mine", "10.7.1"), ("gw1", "mine2", "10.7.2"), ("gw9", "mine10", "10.7.10")]
)
def test_each_process_has_a_lab_of_its_own(worker: str, name: str, subnet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in LabConfig("mine", "10.7.1").environment.items():
        monkeypatch.setenv(variable, value)
    config: Any = SimpleNamespace(workerinput={"workerid": worker})
    labfixture.pytest_configure(config)
    assert LabConfig.from_environment() == LabConfig(name, subnet)


def test_without_processes_side_by_side_it_is_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_LAB_NAME", "mine")
    labfixture.pytest_configure(SimpleNamespace())  # type: ignore[arg-type]
    assert os.environ["RECONCILE_LAB_NAME"] == "mine"


def test_a_lane_keeps_what_it_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}

    started = subprocess.Popen

    def start(argv: object, *, env: dict[str, str], **_: object) -> subprocess.Popen[bytes]:
        seen.update(env)
        return started(("true",))

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(subprocess, "Popen", start)
    assert lanes.coverage("report") == 0
    assert "PYTHONDONTWRITEBYTECODE" not in seen
    assert seen["PATH"] == os.environ["PATH"]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the labs that were ended; `mine` was up before."""
    names: list[str] = []
    configured = LabConfig("mine", "10.7.1", run=tmp_path)
    configured.state.mkdir()
    monkeypatch.setattr(LabConfig, "from_environment", lambda: configured)
    monkeypatch.setattr(lanes, "missing_for_lab", lambda: "")
    monkeypatch.setattr(Lab, "down", lambda lab: names.append(lab.config.name))
    return names


@pytest.mark.parametrize("lane", ["lab", "deep"])
def test_labs_that_a_lane_left_are_ended_and_one_that_was_up_stays(
    lane: str, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "coverage", lambda *argv: 1)
    assert lanes.run_lane(lane, []) == 1
    assert "mine" not in ended
    assert ended[: lanes.WORKERS - 1] == [f"mine{number + 1}" for number in range(1, lanes.WORKERS)]


def test_an_interrupted_lane_ends_its_labs_and_says_so(
    ended: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*argv: str) -> int:
        if argv[0] == "run":
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(lanes, "coverage", interrupted)
    assert lanes.main(["lab"]) == 130
    assert capsys.readouterr().out.endswith("interrupted\n")
    assert "mine2" in ended


def test_a_lane_that_boots_nothing_ends_nothing(ended: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "coverage", lambda *argv: 0)
    assert lanes.run_lane("fast", []) == 0
    assert ended == []
