"""Leases: taken, kept young on every node whatever the others do, given back or abandoned."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.journal import Journal
from reconciler.apply.lease import Leases
from reconciler.errors import Garbled, LockHeld, NodeRefused, Unreachable
from reconciler.events import Event
from reconciler.pool import Pool
from tests.nodes.cluster import desired
from tests.nodes.site import Site

NAMES = ("a", "b", "c", "d", "e", "z")


@pytest.fixture
def pool(site: Site) -> Iterator[Pool]:
    found = site.pool(desired(NAMES, {}))
    yield found
    found.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    found = Journal(tmp_path / "j")
    yield found
    found.close()


def test_a_lease_has_a_token_that_rises(site: Site, pool: Pool, journal: Journal) -> None:
    leases = Leases("me", journal, lambda e: None)
    channel = pool.channel("a")
    assert [leases.take("a", channel, "p1"), leases.take("a", channel, "p2")] == [1, 2]
    assert (leases.held(), leases.token("a")) == (("a",), 2)
    assert [(r["node"], r["plan"], r["token"]) for r in journal.records] == [("a", "p1", 1), ("a", "p2", 2)]
    leases.give_back("a", channel)
    assert (leases.held(), site.lease("a")["holder"], site.lease("a")["token"]) == ((), "", 2)


def test_a_lease_of_somebody_else(pool: Pool, journal: Journal) -> None:
    channel = pool.channel("a")
    Leases("other", journal, lambda e: None).take("a", channel, "p")
    with pytest.raises(LockHeld) as refused:
        Leases("me", journal, lambda e: None).take("a", channel, "p")
    assert {k: refused.value.data[k] for k in ("node", "holder", "plan", "ttl")} == {
        "node": "a",
        "holder": "other",
        "plan": "p",
        "ttl": 60.0,
    }


def test_a_lease_that_ran_out_may_be_taken_over(site: Site, pool: Pool, journal: Journal) -> None:
    channel = pool.channel("a")
    old = Leases("other", journal, lambda e: None)
    old.take("a", channel, "p")
    site.change_lease("a", renewed=-1e6)
    assert Leases("me", journal, lambda e: None).take("a", channel, "p") == 2
    with pytest.raises(NodeRefused, match="StaleToken"):
        old.give_back("a", channel)


ANSWERS: list[tuple[Any, type[Exception]]] = [
    ({}, Garbled),
    ({"token": None}, Garbled),
    (NodeRefused("LeaseHeld", node="x", reason="y"), LockHeld),
    (NodeRefused("NoSystemd", detail="x"), NodeRefused),
    (Unreachable("ConnectionLost"), Unreachable),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_what_else_a_node_may_say(site: Site, pool: Pool, journal: Journal, answer: Any, expected: type[Exception]) -> None:
    def before(name: str, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    site.before = before
    leases = Leases("me", journal, lambda e: None)
    with pytest.raises(expected):
        leases.take("a", pool.channel("a"), "p")
    assert (leases.held(), journal.records) == ((), [])


def age(site: Site, name: str) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) - float(site.lease(name)["renewed"])


def test_leases_are_renewed_until_they_are_abandoned(site: Site, pool: Pool, journal: Journal) -> None:
    with Leases("me", journal, lambda e: None, ttl=0.3) as leases:
        for name in ("a", "b"):
            leases.take(name, pool.channel(name), "p")
        leases.abandon("b")
        leases.abandon("never held")
        time.sleep(1.0)
        assert age(site, "b") > 0.9
        assert age(site, "a") < 0.9
        assert leases.held() == ("a",)
    time.sleep(0.3)
    assert age(site, "a") > 0.3


def test_nodes_that_hang_do_not_let_the_leases_of_others_run_out(site: Site, pool: Pool, journal: Journal) -> None:
    """One after the other, five requests that each wait for a third of the time would be longer than the lease."""
    told: list[Event] = []
    ttl = 1.5

    def before(name: str, op: str, fields: Mapping[str, Any]) -> None:
        if op == "renew" and name != "z":
            time.sleep(ttl / 3)
            raise Unreachable("DeadlinePassed")

    with Leases("me", journal, told.append, ttl) as leases:
        for name in NAMES:
            leases.take(name, pool.channel(name), "p")
        site.before = before
        oldest = 0.0
        until = time.monotonic() + 3 * ttl
        while time.monotonic() < until:
            oldest = max(oldest, age(site, "z"))
            time.sleep(0.05)
    assert oldest < ttl
    assert {(e.kind, e.data["reason"]) for e in told} == {("lease-not-renewed", "DeadlinePassed")}
