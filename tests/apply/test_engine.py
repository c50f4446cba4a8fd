"""Applies over real node programs: how each node ends, what is written, and what is left for the next apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from reconciler.apply import adopt, executor
from reconciler.apply.work import Stop
from reconciler.errors import Unreachable
from reconciler.kinds import hostname
from reconciler.kinds.base import Draft, spec_digest
from reconciler.model.outcome import End
from tests.nodes.cluster import FILES, Controller, desired
from tests.nodes.faults import THREE, Answer, ends, once, raising
from tests.nodes.site import Site


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
    assert (failed["argv"], failed["status"], failed["output"]) == (["hostnamectl", "set-hostname", "--", "a"], 4, "it is broken")
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


def finishing(site: Site, name: str) -> Callable[[], None]:
    """What lets a step end that runs since an apply before."""
    return (site.root / name / "slow").unlink


def test_a_link_that_breaks_in_a_step(site: Site, control: Controller) -> None:
    """What runs goes on in its unit; the next apply takes its outcome over and repeats nothing."""
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", site.closing("a"))
    wanted = desired(["a"], FILES)
    done = control.apply(wanted)
    assert (ends(done.outcomes), done.exit) == ({"a": "lost ConnectionLost"}, 4)
    assert [r["settled"] for r in site.steps("a")] == [False]
    site.before = once("a", "wait", finishing(site, "a"))
    again = control.apply(wanted)
    assert (ends(again.outcomes), again.exit) == ({"a": "converged"}, 0)
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]
    assert control.shown("adopting", "adopted") == ["adopting a", "adopted a"]
    (adopted,) = control.records("adopted")
    assert (adopted["state"], adopted["title"]) == ("done", "set-hostname")
    assert [(r["title"], r["settled"]) for r in site.steps("a")] == [("set-hostname", True), ("write-file", True)]


@pytest.mark.parametrize("op", ["records", "settle"])
def test_nothing_is_done_where_the_past_could_not_be_settled(site: Site, control: Controller, op: str) -> None:
    """Else an older outcome would be taken over after a newer one, and the inventory would remember the older spec."""
    site.before = once("a", "settle", raising(Unreachable("ConnectionLost")))
    control.apply(desired(THREE, FILES))
    site.before = once("a", op, raising(Unreachable("DeadlinePassed")))
    newer = desired(THREE, {"/etc/motd": "newer\n"})
    done = control.apply(newer)
    assert ends(done.outcomes) == {"a": "unreachable DeadlinePassed", "b": "converged", "c": "converged"}
    assert (site.root / "a/etc/motd").read_text() == "hi\n"
    assert control.apply(newer).exit == 0
    entry = json.loads((site.root / "a/state/inventory.json").read_text())["resources"]["File//etc/motd"]
    assert entry["spec"] == spec_digest(newer.nodes["a"].resources[1].spec)


def test_a_step_that_still_runs_holds_the_plan_of_its_node(site: Site, control: Controller) -> None:
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", site.closing("a"))
    wanted = desired(["a"], FILES)
    control.apply(wanted)
    holds = [c.hold.code for c in control.plan(wanted).nodes["a"].changes if c.hold]
    assert holds == ["StepRunning", "StepRunning"]
    finishing(site, "a")()


@pytest.mark.usefixtures("short_waits")
def test_an_interruption_lets_what_runs_be_and_begins_nothing(site: Site, control: Controller) -> None:
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", lambda: control.stop.set(End.INTERRUPTED))
    done = control.apply(desired(THREE, FILES))
    assert ends(done.outcomes) == {"a": "interrupted Interrupted", "b": "interrupted", "c": "interrupted"}
    assert (done.exit, site.commands("b")) == (130, [])
    assert [site.lease(n)["holder"] for n in THREE] == ["", "", ""]
    assert control.records("apply-finished")[0]["exit"] == 130
    site.before = once("a", "wait", finishing(site, "a"))
    control.stop = Stop()
    assert control.apply(desired(THREE, FILES)).exit == 0
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]


def test_an_interruption_while_a_step_of_before_is_waited_for(
    site: Site, control: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adopt, "WAIT", 0.1)
    (site.node("a") / "slow").touch()
    site.before = once("a", "wait", site.closing("a"))
    control.apply(desired(["a"], FILES))
    before = control.records()
    site.before = once("a", "wait", lambda: control.stop.set(End.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        control.apply(desired(["a"], FILES))
    assert (control.records(), control.shown("adopting")) == (before, ["adopting a"])
    site.before = once("a", "wait", finishing(site, "a"))
    control.stop = Stop()
    assert control.apply(desired(["a"], FILES)).exit == 0
    assert site.commands("a") == ["hostnamectl set-hostname -- a"]


@pytest.mark.usefixtures("short_waits")
def test_a_step_beyond_its_deadline_is_left_running(site: Site, control: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostname, "Draft", partial(Draft, deadline=0.2))
    (site.node("a") / "slow").touch()
    done = control.apply(desired(["a"], FILES))
    assert ends(done.outcomes) == {"a": "failed StillRunning"}
    finishing(site, "a")()


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
