"""Many nodes side by side: one that fails stops nobody, a fault of ours is raised when nobody is at work any more."""

from __future__ import annotations

import threading
import time

import pytest

from reconciler.errors import Garbled, LockHeld, NodeRefused, ReconcileError, Unreachable
from reconciler.model.observed import Failure
from reconciler.pool import Pool, failure
from tests.nodes.cluster import Controller, desired
from tests.nodes.site import Site

NAMES = [f"n{i}" for i in range(40)]
KINDS = [(Unreachable("NoRoute", host="x"), "unreachable"), (Garbled("NotJson"), "garbled"), (NodeRefused("StepActive"), "refused")]


@pytest.fixture
def pool(site: Site) -> Pool:
    return site.pool(desired(("a", "b"), {}))


@pytest.mark.parametrize(("error", "kind"), KINDS)
def test_the_error_of_a_node_is_its_failure(pool: Pool, error: ReconcileError, kind: str) -> None:
    done: list[str] = []

    def work(name: str) -> str:
        if name == "n7":
            raise error
        return name.upper()

    found = pool.each(NAMES, work, done.append)
    assert found.pop("n7") == Failure(kind, error.reason, dict(error.data)) == failure(error)
    assert found == {n: n.upper() for n in NAMES if n != "n7"}
    assert (list(found), sorted(done)) == ([n for n in NAMES if n != "n7"], sorted(NAMES))


@pytest.mark.parametrize("error", [ZeroDivisionError(), LockHeld("OtherController")])
def test_any_other_error_is_raised_when_all_others_are_done(pool: Pool, error: Exception) -> None:
    done: list[str] = []

    def work(name: str) -> None:
        if name == "n0":
            raise error
        time.sleep(0.05)
        done.append(name)

    with pytest.raises(type(error)):
        pool.each(NAMES, work)
    assert sorted(done) == sorted(NAMES[1:])


def test_nobody_is_asked_where_there_is_nobody(pool: Pool) -> None:
    assert pool.each([], lambda name: 1 / 0) == {}


def test_nodes_are_worked_on_side_by_side(pool: Pool) -> None:
    meeting = threading.Barrier(32, timeout=10)
    assert len(pool.each(NAMES[:32], lambda name: meeting.wait())) == 32


def test_a_channel_is_kept_until_it_is_dropped(site: Site, pool: Pool) -> None:
    first = pool.channel("a")
    assert pool.channel("a") is first
    assert pool.received() > 0
    pool.drop("a")
    pool.drop("b")
    again = pool.channel("a")
    assert again is not first
    assert again.request("records", 10.0)["steps"] == []
    pool.close()
    assert pool.received() == 0


def test_a_node_that_could_not_be_reached_is_waited_for_once(site: Site, pool: Pool) -> None:
    site.down["a"] = Unreachable("ConnectTimedOut", host="a")
    errors = []
    for _ in range(2):
        with pytest.raises(Unreachable) as refused:
            pool.channel("a")
        errors.append(refused.value)
        site.down = {}
    assert errors[0] is not errors[1]
    assert [(e.reason, e.data["host"]) for e in errors] == [("ConnectTimedOut", "a")] * 2
    assert pool.channel("b").hello.python


def test_the_link_of_a_failed_node_is_closed_and_that_of_a_refusal_is_kept(pool: Pool) -> None:
    kept = {name: pool.channel(name) for name in ("a", "b")}
    errors = {"a": Unreachable("ConnectionLost"), "b": NodeRefused("StepActive")}

    def work(name: str) -> None:
        raise errors[name]

    pool.each(("a", "b"), work)
    assert (pool.channel("a") is kept["a"], pool.channel("b") is kept["b"]) == (False, True)
    pool.close()


def test_whatever_a_node_calls_its_data_is_data(control: Controller) -> None:
    hostile = {"reason": 1, "self": 2, "data": 3, "cls": 4}
    assert dict(NodeRefused("X", **hostile).data) == hostile
