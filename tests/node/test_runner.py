"""What a step's unit executes, without the unit: each outcome on disk before the next command begins."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from reconciler.node import lease, runner, state, steps, units
from tests.node.conftest import Clock, Systemctl


@pytest.fixture(autouse=True)
def quiet(systemctl: Systemctl, clock: Clock) -> None:
    """No real systemd, no real clock."""


def intended(*commands: dict[str, Any]) -> int:
    """The record of step 1 under a new lease, and its pipe; answers the token."""
    token = int(lease.grant("one", "p", 60.0)["token"])
    record = {"token": token, "step": 1, "plan": "p", "title": "t", "resources": [], "inventory": {}, "boot_id": "boot-1"}
    state.write_record(
        state.path("steps", f"{token}-1.json"),
        {**record, "state": "intended", "commands": list(commands), "results": [], "settled": False},
    )
    Path(state.RUN).mkdir(exist_ok=True)
    os.mkfifo(units.pipe(token, 1))
    return token


def test_commands_run_in_order_and_their_outcome_is_kept() -> None:
    token = intended(
        {"argv": ["sh", "-c", "echo out; echo err >&2"]},
        {"argv": ["cat"], "stdin": "given é"},
        {"argv": ["sh", "-c", "echo $MORE $DEBIAN_FRONTEND; pwd"], "env": {"MORE": "more"}},
    )
    assert runner.main(token, 1) == 0
    record = steps.record(token, 1)
    assert (record["state"], record["error"]) == ("done", "")
    assert [(r["status"], r["out"], r["err"]) for r in record["results"]] == [
        (0, "out\n", "err\n"),
        (0, "given é", ""),
        (0, "more noninteractive\n/\n", ""),
    ]


@pytest.mark.parametrize(
    ("argv", "status"), [(["sh", "-c", "exit 7"], 7), (["no-such-command"], None), (["sh", "-c", "kill -9 $$"], -9)]
)
def test_the_first_failure_ends_the_step(tmp_path: Path, argv: list[str], status: int | None) -> None:
    token = intended({"argv": ["true"]}, {"argv": argv}, {"argv": ["touch", str(tmp_path / "after")]})
    assert runner.main(token, 1) == 1
    record = steps.record(token, 1)
    assert (record["state"], record["error"]) == ("failed", "CommandFailed")
    assert [r["status"] for r in record["results"]] == [0, status]
    assert not (tmp_path / "after").exists()


def test_of_much_output_the_end_is_kept() -> None:
    token = intended({"argv": ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo the end"]})
    assert runner.main(token, 1) == 0
    out = steps.record(token, 1)["results"][0]["out"]
    assert len(out) == runner.TAIL
    assert out.endswith("the end\n")


def test_a_token_that_is_stale_by_now_runs_nothing(tmp_path: Path) -> None:
    token = intended({"argv": ["touch", str(tmp_path / "done")]})
    lease.grant("one", "p", 60.0)
    with pytest.raises(state.Refused, match="StaleToken"):
        runner.main(token, 1)
    assert steps.record(token, 1)["state"] == "intended"
    assert not (tmp_path / "done").exists()


def test_systemd_is_told_when_the_step_can_be_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = intended({"argv": ["true"]})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / "notify"))
        s.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        assert runner.main(token, 1) == 0
        assert s.recv(100) == b"READY=1"
