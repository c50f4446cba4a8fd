"""Applies over real node programs: other controllers, nodes that refuse or talk nonsense, saved plans."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply import executor
from reconciler.errors import Garbled, LockHeld, NodeRefused, StalePlan
from reconciler.render import data
from tests.nodes.cluster import FILES, Controller, desired
from tests.nodes.faults import THREE, Answer, ends, once, raising
from tests.nodes.site import Site


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
        "version": 1,
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
        (site.root / "b/state/steps/1-1.json").write_text(json.dumps({**STEP, "settled": True}))
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


STEP: dict[str, Any] = {"token": 1, "step": 1, "version": 1, "state": "done", "commands": [], "inventory": {}, "plan": "p"}
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
    assert ends(done.outcomes) == {"a": "converged", "b": "garbled WrongShape", "c": "converged"}


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
    site.before = once("a", "wait", site.closing("a"))
    wanted = desired(["a", "b"], FILES)
    control.apply(wanted)
    (site.root / "a/slow").unlink()
    time.sleep(0.3)
    site.before = once("a", "settle", raising(Garbled("NotJson")))
    done = control.apply(wanted)
    assert (ends(done.outcomes), done.exit) == ({"a": "garbled NotJson", "b": "converged"}, 3)
    assert control.apply(wanted).exit == 0
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]
