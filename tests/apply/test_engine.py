"""Applies over real node programs: how each node ends, what is written, and what is left for the next apply."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply import executor
from reconciler.errors import Garbled, LockHeld, NodeRefused, StalePlan, Unreachable
from reconciler.model.outcome import End, NodeOutcome
from reconciler.render import data
from tests.nodes.cluster import FILES, Controller, desired
from tests.nodes.site import Site

Answer = Mapping[str, Any] | None
THREE = ("a", "b", "c")


def ends(outcomes: Mapping[str, NodeOutcome]) -> dict[str, str]:
    return {name: o.end.value + (f" {o.reason}" if o.reason else "") for name, o in sorted(outcomes.items())}


def once(node: str, op: str, act: Callable[[], Answer]) -> Callable[[str, str, Mapping[str, Any]], Answer]:
    """Do something in the place of, or before, the first such request."""
    left = [(node, op)]

    def before(name: str, asked: str, fields: Mapping[str, Any]) -> Answer:
        if (name, asked) in left:
            left.remove((name, asked))
            return act()
        return None

    return before


def raising(error: Exception) -> Callable[[], Answer]:
    def act() -> Answer:
        raise error

    return act


def test_an_apply_and_a_second_one_that_writes_nothing(site: Site, control: Controller) -> None:
    wanted = desired(THREE, FILES)
    first = control.apply(wanted)
    assert (ends(first.outcomes), first.exit) == (dict.fromkeys(THREE, "converged"), 0)
    assert [o.changed for o in first.outcomes.values()] == [2, 2, 2]
    assert all((site.root / n / "etc/motd").read_text() == "hi\n" for n in THREE)
    assert all((site.root / n / "etc/hostname").read_text() == f"{n}\n" for n in THREE)
    assert [site.lease(n)["holder"] for n in THREE] == ["", "", ""]
    assert all(r["settled"] for n in THREE for r in site.steps(n))
    before = {n: site.records(n) for n in THREE}
    second = control.apply(wanted)
    assert (ends(second.outcomes), second.exit) == (dict.fromkeys(THREE, "unchanged"), 0)
    assert {n: site.records(n) for n in THREE} == before
    assert [r["type"] for r in control.records()][-1] == "planned"


def test_what_was_found_as_declared_is_drift_when_it_moves(site: Site, control: Controller) -> None:
    (site.node("a") / "etc/motd").write_text("hi\n")
    control.apply(desired(["a"], FILES, hostname=False))
    (site.root / "a/etc/motd").write_text("changed\n")
    (change,) = control.apply(desired(["a"], FILES, hostname=False)).plan.nodes["a"].changes
    assert change.reason == "drift"


def test_the_order_of_events_and_records(site: Site, control: Controller) -> None:
    control.apply(desired(["a", "b"], FILES))
    shown = control.shown("wave-started", "step-started", "step-finished", "node-finished")
    node = ["step-started", "step-finished"] * 2 + ["node-finished"]
    assert shown == ["wave-started", *(f"{e} a" for e in node), "wave-started", *(f"{e} b" for e in node)]
    kinds = [r["type"] for r in control.records() if r.get("node") == "a"]
    assert kinds == ["lease", *["intent", "outcome", "verified"] * 2, "converged", "node-finished"]


def test_a_canary_that_fails_ends_the_rollout(site: Site, control: Controller) -> None:
    (site.node("a") / "broken").touch()
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "failed StepFailed", "b": "skipped CanaryFailed", "c": "skipped CanaryFailed"}
    assert (done.exit, done.outcomes["b"].data) == (3, {"canary": "a"})
    failed = done.outcomes["a"].data
    assert (failed["argv"], failed["status"], failed["output"]) == (["hostnamectl", "set-hostname", "--", "a"], 4, "it is broken\n")
    assert site.commands("b") == site.commands("c") == []
    assert [site.lease(n)["holder"] for n in THREE] == ["", "", ""]


def test_a_node_stops_at_its_first_failure_and_the_others_go_on(site: Site, control: Controller) -> None:
    (site.node("b") / "broken").touch()
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "converged", "b": "failed StepFailed", "c": "converged"}
    assert (done.exit, done.outcomes["b"].changed) == (3, 0)
    assert not (site.root / "b/etc/motd").exists()
    assert [r["state"] for r in site.steps("b")] == ["failed"]


def test_only_the_second_look_decides(site: Site, control: Controller) -> None:
    (site.node("a") / "useless").touch()
    done = control.apply(desired(["a"], FILES))
    assert (ends(done.outcomes), done.exit) == ({"a": "failed StillDiffers"}, 3)
    still = [{"resource": "Hostname/a", "fields": [["static", "localhost", "a"], ["running", "localhost", "a"]]}]
    assert done.outcomes["a"].data["still"] == still


def test_a_node_that_is_down(site: Site, control: Controller) -> None:
    site.down["b"] = Unreachable("ConnectTimedOut", host="b", port=22)
    done = control.apply(desired(THREE, FILES))
    assert (ends(done.outcomes), done.exit) == ({"a": "converged", "b": "unreachable ConnectTimedOut", "c": "converged"}, 4)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "WAIT", 0.1)


def finish_soon(site: Site, name: str) -> threading.Timer:
    timer = threading.Timer(0.3, (site.root / name / "slow").unlink)
    timer.start()
    return timer


def test_a_link_that_breaks_in_a_step(site: Site, control: Controller) -> None:
    """What runs goes on in its unit; the next apply takes its outcome over and repeats nothing."""
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", lambda: site.channels["a"].close())
    wanted = desired(["a"], FILES)
    done = control.apply(wanted)
    assert (ends(done.outcomes), done.exit) == ({"a": "lost ConnectionLost"}, 4)
    assert [r["settled"] for r in site.steps("a")] == [False]
    finish_soon(site, "a")
    again = control.apply(wanted)
    assert (ends(again.outcomes), again.exit) == ({"a": "converged"}, 0)
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]
    assert control.shown("adopting", "adopted") == ["adopting a", "adopted a"]
    (adopted,) = control.records("adopted")
    assert (adopted["state"], adopted["title"]) == ("done", "set-hostname")
    assert [(r["title"], r["settled"]) for r in site.steps("a")] == [("set-hostname", True), ("write-file", True)]


def test_a_step_that_still_runs_holds_the_plan_of_its_node(site: Site, control: Controller) -> None:
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", lambda: site.channels["a"].close())
    wanted = desired(["a"], FILES)
    control.apply(wanted)
    holds = [c.hold.code for c in control.plan(wanted).nodes["a"].changes if c.hold]
    assert holds == ["StepRunning", "StepRunning"]
    finish_soon(site, "a").join()


@pytest.mark.usefixtures("short_waits")
def test_an_interruption_lets_what_runs_be_and_begins_nothing(site: Site, control: Controller) -> None:
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", lambda: control.stop.set(End.INTERRUPTED))
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "interrupted Interrupted", "b": "interrupted", "c": "interrupted"}
    assert (done.exit, site.commands("b")) == (130, [])
    assert [site.lease(n)["holder"] for n in THREE] == ["", "", ""]
    assert control.records("apply-finished")[0]["exit"] == 130
    finish_soon(site, "a")
    control.stop = executor.Stop()
    assert control.apply(desired(THREE, FILES)).exit == 0
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]


@pytest.mark.usefixtures("short_waits")
def test_a_step_beyond_its_deadline_is_left_running(site: Site, control: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.kinds import hostname

    monkeypatch.setattr(hostname, "Draft", lambda *args: _short(*args))
    (site.node("a") / "slow").touch()
    done = control.apply(desired(["a"], FILES))
    assert ends(done.outcomes) == {"a": "failed StillRunning"}
    finish_soon(site, "a").join()


def _short(*args: Any) -> Any:
    from reconciler.kinds.base import Draft

    return Draft(*args, deadline=0.2)


def stolen(site: Site, name: str) -> Answer:
    site.change_lease(name, token=99, holder="another")
    return None


@pytest.mark.parametrize("op", ["begin", "settle", "release"])
def test_another_controller_took_over(site: Site, control: Controller, op: str) -> None:
    site.before = once("a", op, lambda: stolen(site, "a"))
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "superseded StaleToken", "b": "superseded", "c": "superseded"}
    assert (done.exit, site.commands("b")) == (6, [])
    assert site.lease("a")["token"] == 99


@pytest.mark.parametrize("op", ["begin", "settle"])
def test_a_lease_that_ran_out_is_renewed_where_nobody_else_was_given_one(site: Site, control: Controller, op: str) -> None:
    site.before = once("a", op, lambda: site.change_lease("a", renewed=-1e6))
    assert ends(control.apply(desired(["a"], FILES)).outcomes) == {"a": "converged"}


def test_a_lease_that_one_node_refuses_does_not_stop_the_others(site: Site, control: Controller) -> None:
    def damage() -> Answer:
        (site.root / "b/state").mkdir(exist_ok=True)
        (site.root / "b/state/lease.json").write_text("no json")
        return None

    site.before = once("b", "lease", damage)
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "converged", "b": "failed DamagedRecord", "c": "converged"}


def test_a_node_that_goes_down_before_its_lease_had_nothing_running(site: Site, control: Controller) -> None:
    site.before = once("b", "lease", raising(Unreachable("ConnectionLost")))
    assert ends(control.apply(desired(THREE, FILES)).outcomes)["b"] == "unreachable ConnectionLost"


def _others(site: Site, name: str) -> Answer:
    """Another controller was quicker."""
    at = site.root / name / "state"
    at.mkdir(exist_ok=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    lease = {
        "token": 7,
        "holder": "another",
        "plan": "p",
        "ttl": 60.0,
        "renewed": time.clock_gettime(time.CLOCK_BOOTTIME),
        "boot_id": boot,
    }
    (at / "lease.json").write_text(json.dumps(lease))
    return None


def test_another_controllers_lease_ends_the_apply_before_anything_is_planned(site: Site, control: Controller) -> None:
    site.node("b")
    _others(site, "b")
    with pytest.raises(LockHeld) as refused:
        control.apply(desired(THREE, FILES))
    assert (refused.value.reason, refused.value.data["node"], refused.value.data["holder"]) == ("OtherController", "b", "another")
    assert control.records() == []


def test_a_lease_of_somebody_else_gives_all_of_ours_back(site: Site, control: Controller) -> None:
    """Also those that were still being taken when the other one was found."""

    def before(name: str, op: str, fields: Mapping[str, Any]) -> Answer:
        if op == "lease":
            if name == "b":
                return _others(site, "b")
            time.sleep(0.3)
        return None

    site.before = before
    with pytest.raises(LockHeld):
        control.apply(desired(THREE, FILES))
    assert [site.lease(n)["holder"] for n in THREE] == ["", "another", ""]
    assert all(site.commands(n) == [] for n in THREE)


def test_a_record_that_is_there_already_is_a_failure_of_that_node(site: Site, control: Controller) -> None:
    def exists() -> Answer:
        (site.root / "b/state/steps").mkdir()
        (site.root / "b/state/steps/1-1.json").write_text(json.dumps({"token": 1, "step": 1, "settled": True}))
        return None

    site.before = once("b", "begin", exists)
    assert ends(control.apply(desired(THREE, FILES)).outcomes) == {"a": "converged", "b": "failed StepExists", "c": "converged"}


HOSTILE = {
    "reason": "x",
    "self": 1,
    "step": [],
    "argv": 5,
    "output": {},
    "still": "abc",
    "error": "e",
    "node": "z",
    "node_": "\x1b",
}


@pytest.mark.parametrize("op", ["begin", "settle", "lease"])
def test_whatever_a_node_refuses_with_is_only_its_own_failure(site: Site, control: Controller, op: str) -> None:
    site.before = once("b", op, raising(NodeRefused("{", **HOSTILE)))
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "converged", "b": "failed {", "c": "converged"}
    assert done.exit == 3


GARBAGE: list[tuple[str, Any]] = [
    ("begin", {}),
    ("begin", {"state": 1}),
    ("begin", {"state": "failed", "results": 5}),
    ("begin", {"state": "failed", "results": [1], "commands": [1]}),
    ("wait", {}),
    ("wait", {"state": None}),
    ("lease", {}),
    ("lease", {"token": "1"}),
    ("records", {}),
    ("records", {"steps": 5, "inventory": {}, "lease": None}),
    ("records", {"steps": [{"state": "done"}], "inventory": {}, "lease": None}),
    ("records", {"steps": [], "inventory": {"a": 1}, "lease": None}),
    ("records", {"steps": [], "inventory": {}, "lease": [1]}),
    ("probe", {}),
    ("probe", {"facts": {}, "records": 5}),
    ("probe", {"facts": {}, "records": {"steps": [1]}}),
]


@pytest.mark.parametrize(("op", "answer"), GARBAGE)
def test_a_node_that_answers_garbage_is_only_its_own_failure(site: Site, control: Controller, op: str, answer: Any) -> None:
    if op == "wait":
        (site.node("b") / "slow").touch()
    site.before = once("b", op, lambda: answer)
    done = control.apply(desired(THREE, FILES))
    # where only the first look at its memory is garbage, the node is planned afresh: nothing was left behind there
    expected = "converged" if op == "records" else "garbled WrongShape"
    assert ends(done.outcomes) == {"a": "converged", "b": expected, "c": "converged"}


STRANGE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"results": [{}], "commands": []}, {}),
    ({"results": [{"status": [], "err": 5}], "commands": [{"argv": 7}]}, {"argv": [], "status": [], "output": "5"}),
    ({"results": [{"out": "x" * 5000}], "commands": [{"argv": ["a"]}]}, {"argv": ["a"], "status": None, "output": "x" * 2000}),
]


@pytest.mark.parametrize(("record", "expected"), STRANGE)
def test_a_command_that_ended_strangely_is_told_as_far_as_it_goes(record: dict[str, Any], expected: dict[str, Any]) -> None:
    assert executor._command(record) == expected


def saved(control: Controller, wanted: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(data.plan(control.plan(wanted), "/srv/site")))
    return found


def test_a_saved_plan_is_for_one_use_under_its_own_name(site: Site, control: Controller) -> None:
    wanted = desired(["a", "b"], FILES)
    file = saved(control, wanted)
    assert control.apply(wanted, file).exit == 0
    assert {r["plan"] for r in control.records() if "plan" in r} == {file["id"]}
    with pytest.raises(StalePlan, match="AlreadyUsed"):
        control.apply(wanted, file)


def test_a_saved_plan_with_nothing_left_to_do_is_used_all_the_same(site: Site, control: Controller) -> None:
    (site.node("a") / "etc/motd").write_text("hi\n")
    wanted = desired(["a"], FILES, hostname=False)
    file = saved(control, wanted)
    assert control.apply(wanted, file).exit == 0
    assert not (site.root / "a/state").exists()
    with pytest.raises(StalePlan, match="AlreadyUsed"):
        control.apply(wanted, file)


def test_a_stale_plan_is_refused_before_anything_is_written(site: Site, control: Controller) -> None:
    wanted = desired(["a", "b"], FILES)
    file = saved(control, wanted)
    (site.root / "b/etc/motd").write_text("by hand\n")
    with pytest.raises(StalePlan) as refused:
        control.apply(wanted, file)
    assert [(m.node, m.path) for m in refused.value.data["moved"]] == [("b", "File//etc/motd")]
    assert (control.records(), site.commands("a")) == ([], [])


def test_a_fault_of_ours_is_not_a_nodes(site: Site, control: Controller) -> None:
    site.before = once("b", "begin", raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        control.apply(desired(THREE, FILES))
    assert control.records("node-finished")[-1]["node"] == "c"


def test_adopting_from_a_node_that_fails_again_leaves_it_for_later(site: Site, control: Controller) -> None:
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", lambda: site.channels["a"].close())
    wanted = desired(["a", "b"], FILES)
    control.apply(wanted)
    (site.root / "a/slow").unlink()
    time.sleep(0.3)
    site.before = once("a", "settle", raising(Garbled("NotJson")))
    assert control.apply(wanted).exit == 0
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]
