"""Tests side by side: a lab for each process, fixtures that are shared stay together, and what a lane runs with."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from lab import LabConfig
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

    def ran(argv: object, *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.update(env)
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(subprocess, "run", ran)
    assert lanes.coverage("report") == 0
    assert "PYTHONDONTWRITEBYTECODE" not in seen
    assert seen["PATH"] == os.environ["PATH"]
