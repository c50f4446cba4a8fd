"""Steps and their records, with systemd's listing simulated; steps in real units are the lab's to test."""

from __future__ import annotations

import base64
import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from reconciler.node import state, steps, units
from tests.node.conftest import Asked, Clock, Systemctl


@pytest.fixture
def token(ask: Asked, systemctl: Systemctl) -> int:
    return int(ask("lease", holder="one", plan="p", ttl=60)["token"])


def file_step(path: Path, content: bytes = b"new") -> dict[str, Any]:
    return {
        "file": {"path": str(path), "content": base64.b64encode(content).decode(), "mode": 0o644, "owner": "root", "group": "root"}
    }


def begin(ask: Asked, token: int, action: dict[str, Any], number: int = 1) -> dict[str, Any]:
    made = {"File//f": {"spec": "s", "created": True}}
    return ask("begin", token=token, step=number, plan="p", title="t", resources=["File//f"], inventory=made, action=action)


def test_a_file_step_is_done_at_once_and_settled_into_the_inventory(ask: Asked, token: int, tmp_path: Path) -> None:
    record = begin(ask, token, file_step(tmp_path / "f"))
    assert (record["state"], (tmp_path / "f").read_bytes()) == ("done", b"new")
    assert [s["step"] for s in ask("records")["steps"]] == [1]
    assert ask("records")["inventory"] == {}
    assert ask("settle", token=token, steps=[[token, 1]]) == {}
    assert ask("records")["steps"] == []
    assert ask("records", all=True)["steps"][0]["settled"] is True
    assert ask("records")["inventory"] == {"File//f": {"spec": "s", "created": True}}


def test_what_was_settled_once_is_not_settled_over_newer_outcomes(ask: Asked, token: int, tmp_path: Path) -> None:
    for number, spec in ((1, "older"), (2, "newer")):
        made = {"File//f": {"spec": spec, "created": True}}
        action = file_step(tmp_path / "f")
        ask("begin", token=token, step=number, plan="p", title="t", resources=["File//f"], inventory=made, action=action)
        assert ask("settle", token=token, steps=[[token, number]]) == {}
    assert ask("settle", token=token, steps=[[token, 1]]) == {}
    assert ask("records")["inventory"]["File//f"]["spec"] == "newer"


def test_the_content_of_a_file_is_in_no_record(ask: Asked, token: int, tmp_path: Path, home: Path) -> None:
    action = file_step(tmp_path / "f", b"a secret")
    begin(ask, token, action)
    written = b"".join(p.read_bytes() for p in (home / "lib").rglob("*") if p.is_file())
    assert written
    assert b"a secret" not in written
    assert action["file"]["content"].encode() not in written


def test_a_step_is_never_begun_twice(ask: Asked, token: int, tmp_path: Path) -> None:
    begin(ask, token, file_step(tmp_path / "f", b"one"))
    assert begin(ask, token, file_step(tmp_path / "f", b"two"))["refused"] == "StepExists"
    assert (tmp_path / "f").read_bytes() == b"one"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"owner": "no-one"}, "NoSuchUser"),
        ({"content": "%"}, "Failed"),
        ({"mode": "x"}, "Failed"),
        ({"path": "/proc/x/y"}, "Failed"),
    ],
)
def test_a_file_step_that_fails_says_so_in_its_record(
    ask: Asked, token: int, tmp_path: Path, change: dict[str, Any], error: str
) -> None:
    action = {"file": {**file_step(tmp_path / "f")["file"], **change}}
    record = begin(ask, token, action)
    assert (record["state"], record["error"]) == ("failed", error)
    assert not (tmp_path / "f").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_step_whose_unit_is_refused_has_failed(ask: Asked, token: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ask.program.source = zlib.compress(b"# a program")

    def refuse(*_: object) -> None:
        raise state.Refused("NoSystemd", detail="no bus")

    monkeypatch.setattr(units, "start", refuse)
    record = begin(ask, token, {"commands": [{"argv": ["true"]}]})
    assert (record["state"], record["error"], record["detail"]) == ("failed", "NoSystemd", "no bus")


def started(token: int, number: int, boot: str) -> None:
    """The record of a step whose runner is at work."""
    record = {"token": token, "step": number, "plan": "p", "title": "t", "resources": [], "inventory": {}, "boot_id": boot}
    path = state.path("steps", f"{token}-{number}.json")
    state.write_record(path, {**record, "state": "started", "commands": [{"argv": ["x"]}], "results": [], "settled": False})


@pytest.mark.parametrize(
    ("listing", "boot", "expected"),
    [
        ("reconcile-step-3-1.service loaded active running reconcile step\n", "boot-1", "started"),
        ("reconcile-step-3-1.service loaded active exited reconcile step\n", "boot-1", "interrupted"),
        ("reconcile-step-3-1.service loaded failed failed reconcile step\n", "boot-1", "interrupted"),
        ("reconcile-step-3-2.service loaded active running reconcile step\n", "boot-1", "interrupted"),
        ("", "boot-1", "interrupted"),
        ("reconcile-step-3-1.service loaded active running reconcile step\n", "boot-0", "interrupted"),
    ],
)
def test_started_is_believed_only_while_its_unit_runs(
    ask: Asked, systemctl: Systemctl, clock: Clock, listing: str, boot: str, expected: str
) -> None:
    systemctl.listing = listing
    started(3, 1, boot)
    assert [s["state"] for s in ask("records")["steps"]] == [expected]


def test_a_running_step_is_not_settled(ask: Asked, token: int, systemctl: Systemctl) -> None:
    started(token, 7, state.boot_id())
    systemctl.listing = f"reconcile-step-{token}-7.service loaded active running reconcile step\n"
    assert ask("settle", token=token, steps=[[token, 7]])["refused"] == "StepActive"
    systemctl.listing = ""
    assert ask("settle", token=token, steps=[[token, 7]]) == {}
    unit = f"reconcile-step-{token}-7.service"
    assert ("stop", unit) in systemctl.calls


def test_old_settled_records_are_trimmed(ask: Asked, token: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "KEPT", 3)
    for number in range(1, 7):
        begin(ask, token, file_step(tmp_path / "f"), number)
        ask("settle", token=token, steps=[[token, number]])
    assert [s["step"] for s in ask("records", all=True)["steps"]] == [4, 5, 6]


def test_waiting_for_a_step_that_is_over_answers_at_once(ask: Asked, token: int, tmp_path: Path) -> None:
    """Its runner has closed the FIFO long ago, which nobody who opens it now is told."""
    begin(ask, token, file_step(tmp_path / "f"))
    Path(state.RUN).mkdir(exist_ok=True)
    os.mkfifo(units.pipe(token, 1))
    began = time.monotonic()
    assert ask("wait", token=token, step=1, seconds=30)["state"] == "done"
    assert time.monotonic() - began < 5
    assert ask.program.waiters == []


def test_waiting_for_no_step(ask: Asked, token: int) -> None:
    assert ask("wait", token=token, step=9, seconds=30)["refused"] == "NoSuchStep"
    assert ask.program.waiters == []


def test_a_wait_ends_with_the_runner(ask: Asked, token: int, systemctl: Systemctl) -> None:
    started(token, 1, state.boot_id())
    systemctl.listing = f"reconcile-step-{token}-1.service loaded active running reconcile step\n"
    Path(state.RUN).mkdir(exist_ok=True)
    os.mkfifo(units.pipe(token, 1))
    runner = os.open(units.pipe(token, 1), os.O_RDWR)
    request = {"id": 5, "op": "wait", "token": token, "step": 1, "seconds": 30}
    ask.program.handle(json.dumps(request).encode())
    assert ask.answers == []
    steps.update(token, 1, state="done")
    os.close(runner)
    silent, talk = os.pipe()
    over, readable = steps.wait_any(ask.program.waiters, silent)
    ask.program.look_at(over)
    os.close(silent)
    os.close(talk)
    assert not readable
    assert [(a["id"], a["ok"]["state"]) for a in ask.answers] == [(5, "done")]


def test_a_wait_that_takes_its_time_answers_with_the_state_so_far(ask: Asked, token: int, systemctl: Systemctl) -> None:
    started(token, 1, state.boot_id())
    systemctl.listing = f"reconcile-step-{token}-1.service loaded active running reconcile step\n"
    assert ask("wait", token=token, step=1, seconds=0)["state"] == "started"


LOADED = Path("/proc/driver/nvidia/version")


def reboot(loaded: Path = LOADED) -> dict[str, Any]:
    """A step that restarts the node; `loaded` says what came of it."""
    about = {"resource": "GpuDriver/nvidia", "wanted": "580.95.05", "path": str(loaded)}
    return {"commands": [{"argv": ["systemctl", "reboot"]}], "reboot": about}


@pytest.fixture
def rebooting(clock: Clock, ask: Asked, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> int:
    """The token of a step that was told to restart the node, begun at this boot."""
    ask.program.source = zlib.compress(b"# a program")
    monkeypatch.setattr(units, "start", lambda *_: None)
    taken = int(ask("lease", holder="one", plan="p", ttl=60)["token"])
    assert begin(ask, taken, reboot())["state"] == "intended"
    return taken


def test_only_another_boot_is_the_end_of_a_reboot(rebooting: int, ask: Asked, clock: Clock) -> None:
    for said in ("started", "done"):  # systemctl may have said that all is well, and the machine is still going down
        steps.update(rebooting, 1, state=said)
        assert ask("wait", token=rebooting, step=1, seconds=0)["state"] == "started"
    clock.boot = "boot-2"
    for said in ("started", "done", "failed"):
        steps.update(rebooting, 1, state=said)
        assert ask("wait", token=rebooting, step=1, seconds=0)["state"] == "done"


def test_what_a_reboot_is_to_bring_is_noted(rebooting: int, clock: Clock) -> None:
    noted = json.loads(Path(state.path("reboots.json")).read_text())["reboots"]
    assert noted == {"GpuDriver/nvidia": {"wanted": "580.95.05", "boot_id": clock.boot, "path": str(LOADED)}}


@pytest.mark.parametrize(
    ("loaded", "kept"), [("Module  580.95.05  Release", False), ("Module  580.95.0  Release", True), (None, True), ("", True)]
)
def test_the_note_of_a_reboot_goes_once_its_end_is_seen(
    clock: Clock, rebooting: int, ask: Asked, loaded: str | None, kept: bool, tmp_path: Path
) -> None:
    begin(ask, rebooting, reboot(tmp_path / "version"), 2)
    steps.update(rebooting, 2, state="started")
    clock.boot = "boot-2"
    if loaded is not None:
        (tmp_path / "version").write_text(loaded)
    again = int(ask("lease", holder="one", plan="p", ttl=60)["token"])
    assert ask("settle", token=again, steps=[[rebooting, 2]]) == {}
    noted = json.loads(Path(state.path("reboots.json")).read_text())["reboots"]
    assert list(noted) == (["GpuDriver/nvidia"] if kept else [])


def test_a_node_that_does_not_go_down_fails_the_step(rebooting: int, ask: Asked, clock: Clock) -> None:
    steps.update(rebooting, 1, state="done")
    clock.now += steps.REBOOT_PATIENCE + 1
    seen = ask("wait", token=rebooting, step=1, seconds=0)
    assert (seen["state"], seen["error"]) == ("failed", "DidNotGoDown")


def test_a_reboot_that_never_began_was_interrupted(rebooting: int, ask: Asked) -> None:
    assert ask("wait", token=rebooting, step=1, seconds=0)["state"] == "interrupted"


def test_a_settled_reboot_stays_what_it_was(rebooting: int, ask: Asked, clock: Clock) -> None:
    steps.update(rebooting, 1, state="failed")
    ask("settle", token=rebooting, steps=[[rebooting, 1]])
    clock.boot = "boot-2"
    assert [step["state"] for step in ask("records", all=True)["steps"]] == ["failed"]
