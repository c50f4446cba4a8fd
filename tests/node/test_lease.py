"""The right to write: one holder, a rising token, an age that only the injected clock moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.node import lease, state, steps
from tests.node.conftest import Asked, Clock, Systemctl

FILE = {"path": "/nowhere/f", "content": "", "mode": 0o644, "owner": "root", "group": "root"}
RUNNING = "reconcile-step-3-1.service loaded active running reconcile step\n"
EXITED = "reconcile-step-3-1.service loaded active exited reconcile step\n"


def grant(holder: str = "one", ttl: float = 60.0) -> int:
    return int(lease.grant(holder, "plan", ttl)["token"])


def code(call: object, *arguments: object) -> str:
    with pytest.raises(state.Refused) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.code


@pytest.fixture(autouse=True)
def quiet(systemctl: Systemctl, clock: Clock) -> None:
    """No test here reaches the real systemd or the real clock."""


def test_the_token_rises_with_each_grant() -> None:
    assert [grant(), grant(), grant()] == [1, 2, 3]
    lease.release(3)
    assert grant("two") == 4


def test_held_by_another(clock: Clock) -> None:
    grant("one")
    clock.now += 10
    with pytest.raises(state.Refused) as caught:
        grant("two")
    assert caught.value.code == "LeaseHeld"
    assert (caught.value.data["holder"], caught.value.data["age"], caught.value.data["ttl"]) == ("one", 10.0, 60.0)


def test_the_same_holder_takes_it_from_its_older_self() -> None:
    old = grant("one")
    new = grant("one")
    assert code(lease.check, old) == "StaleToken"
    assert lease.check(new)["holder"] == "one"


def test_it_runs_out_and_another_takes_it(clock: Clock) -> None:
    old = grant("one")
    clock.now += 59.9
    assert lease.check(old)["live"]
    clock.now += 0.2
    assert code(lease.check, old) == "LeaseExpired"
    assert grant("two") == old + 1
    assert code(lease.renew, old) == "StaleToken"


def test_renewed_also_after_it_ran_out_while_nobody_else_came(clock: Clock) -> None:
    token = grant()
    clock.now += 1000
    lease.renew(token)
    assert lease.check(token)["age"] == 0


def test_another_boot_ends_it(clock: Clock) -> None:
    token = grant("one")
    clock.boot, clock.now = "boot-2", 5.0
    assert code(lease.check, token) == "StaleToken"
    assert code(lease.renew, token) == "StaleToken"
    assert grant("two") == token + 1


def test_released(clock: Clock) -> None:
    token = grant("one")
    lease.release(token)
    assert code(lease.check, token) == "StaleToken"
    assert code(lease.release, token) == "StaleToken"
    assert grant("two") == token + 1


@pytest.mark.parametrize(
    ("listing", "active"),
    [
        ("", False),
        (EXITED, False),
        ("reconcile-step-3-1.service loaded failed failed reconcile step\n", False),
        ("reconcile-step-3-1.service not-found inactive dead reconcile-step-3-1.service\n", False),
        (RUNNING, True),
        ("reconcile-step-3-1.service loaded activating start reconcile step\n", True),
        ("reconcile-step-3-1.service loaded deactivating stop-sigterm reconcile step\n", True),
        (EXITED + RUNNING.replace("3-1", "3-2"), True),
    ],
)
def test_no_grant_while_a_step_is_at_work(systemctl: Systemctl, listing: str, active: bool) -> None:
    systemctl.listing = listing
    if active:
        assert code(lease.grant, "one", "plan", 60.0) == "StepActive"
        assert lease.current() is None
    else:
        assert grant() == 1


def test_every_writing_request_needs_the_token(ask: Asked) -> None:
    old = ask("lease", holder="one", plan="p", ttl=60)["token"]
    new = ask("lease", holder="one", plan="p", ttl=60)["token"]
    step = {"step": 1, "plan": "p", "title": "t", "resources": [], "inventory": {}, "action": {"file": FILE}}
    for op, fields in (("renew", {}), ("release", {}), ("begin", step), ("settle", {"steps": []})):
        for token in (old, new + 1, 0, None, "2"):
            assert ask(op, token=token, **fields)["refused"] == "StaleToken", (op, token)
    assert steps.every() == []
    assert ask("renew", token=new) == {"token": new}


@pytest.mark.parametrize("op", ["begin", "settle"])
def test_a_lease_that_ran_out_writes_nothing(ask: Asked, clock: Clock, op: str) -> None:
    token = ask("lease", holder="one", plan="p", ttl=60)["token"]
    clock.now += 61
    fields = {"step": 1, "plan": "p", "title": "t", "resources": [], "inventory": {}, "action": {"file": FILE}, "steps": []}
    assert ask(op, token=token, **fields)["refused"] == "LeaseExpired"
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "DamagedRecord"),
        ("{", "DamagedRecord"),
        ("[]", "DamagedRecord"),
        ("{}", "DamagedRecord"),
        ('{"version": "1"}', "DamagedRecord"),
        ('{"version": 1}', "DamagedRecord"),
        ("\xff", "DamagedRecord"),
        ('{"version": 2, "token": 1}', "NewerRecord"),
    ],
)
def test_records_that_cannot_be_trusted_are_refused(home: Path, text: str, reason: str) -> None:
    record = home / "lib" / "lease.json"
    record.parent.mkdir()
    record.write_bytes(text.encode("latin-1"))
    assert code(lease.current) == reason
    assert code(lease.grant, "one", "plan", 60.0) == reason
    assert record.read_bytes() == text.encode("latin-1")


def test_records_are_private_and_leave_no_temporary_file(home: Path) -> None:
    grant()
    assert (home / "lib").stat().st_mode & 0o777 == 0o700
    assert (home / "lib" / "lease.json").stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in (home / "lib").iterdir()) == ["lease.json", "lock"]
    assert json.loads((home / "lib" / "lease.json").read_text())["version"] == state.VERSION
