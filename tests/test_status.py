"""What the journal says, and the one exit status of an apply."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from reconciler import status
from reconciler.model.observed import Known
from reconciler.model.outcome import PRECEDENCE, End, NodeOutcome, exit_code, first


def record(kind: str, time: float = 1.0, **fields: Any) -> dict[str, Any]:
    return {"seq": 1, "time": time, "type": kind, **fields}


def outcome(title: str, seconds: float, state: str = "done") -> dict[str, Any]:
    return record("outcome", title=title, state=state, seconds=seconds)


STARTED = record("apply-started", 2.0, plan="p1", cluster="lab", commit="c1", saved=False)
PLANNED = record(
    "planned", 1.0, plan="p1", cluster="lab", commit="c1", nodes={"a": {"changes": 2, "held": 1}, "b": {"failure": "NoRoute"}}
)


def finished(node: str, end: str, time: float = 3.0, plan: str = "p1") -> dict[str, Any]:
    return record("node-finished", time, node=node, plan=plan, end=end, reason="", changed=1, data={})


def test_what_was_converged_last_counts() -> None:
    news = [record("converged", node="a", plan="p", resources={"r": d}) for d in ("d1", "d2")]
    more = record("converged", node="a", plan="p", resources={"s": "d3"})
    assert status.known([*news, more]).converged == {"a": {"r": "d2", "s": "d3"}}
    assert status.known([]) == Known()


def test_durations_are_the_median_of_the_latest_that_were_done() -> None:
    old = [outcome("write-file", 100.0)] * 50
    latest = [outcome("write-file", float(i)) for i in range(1, status.TIMINGS_KEPT + 1)]
    assert status.known([*old, *latest, outcome("write-file", 999.0, "failed")]).durations == {"write-file": 10.5}


def test_a_saved_plan_counts_as_used_once_its_apply_began() -> None:
    used = [record("apply-started", plan="p2", cluster="lab", commit=None, saved=True), record("planned", plan="p3"), STARTED]
    assert status.used_plans(used) == {"p2"}


def test_each_nodes_last_plan_and_last_apply() -> None:
    found = status.nodes([PLANNED, STARTED, finished("a", "converged"), finished("c", "failed", 4.0, "lost plan")])
    assert list(found) == ["a", "b", "c"]
    a, b, c = found.values()
    assert (a.cluster, a.plan, a.planned, a.changes, a.held, a.outcome, a.applied, a.commit) == (
        "lab",
        "p1",
        1.0,
        2,
        1,
        "converged",
        3.0,
        "c1",
    )
    assert (b.changes, b.held, b.outcome, b.applied) == (None, None, None, None)
    assert (c.cluster, c.commit, c.outcome) == ("", None, "failed")


def test_applies_with_their_nodes_and_steps() -> None:
    steps = [record("intent", plan="p1", node="a"), record("intent", plan="p1", node="a"), record("intent", plan="other", node="a")]
    end = record("apply-finished", 5.0, plan="p1", exit=3)
    later = record("apply-started", 9.0, plan="p2", cluster="lab", commit="c1", saved=True)
    one, two = status.applies([PLANNED, STARTED, *steps, finished("a", "converged"), finished("b", "failed"), end, later])
    assert (one.started, one.finished, one.exit, one.steps) == (2.0, 5.0, 3, 2)
    assert one.nodes == {"a": "converged", "b": "failed"}
    assert (two.plan, two.finished, two.exit, two.steps, two.nodes) == ("p2", None, None, 0, {})


def test_applies_recovered_from_the_nodes() -> None:
    steps = [
        record("recovered", node=n, cluster="lab", plan="p", token=1, step=1, title="t", state="done", wall=w)
        for n, w in (("a", 9.0), ("b", 7.0))
    ]
    (found,) = status.applies(steps)
    assert (found.started, found.steps, found.commit, found.exit) == (7.0, 2, None, None)
    assert found.nodes == {"a": "done", "b": "done"}


CODES = {
    End.UNCHANGED: 0,
    End.CONVERGED: 0,
    End.FAILED: 3,
    End.GARBLED: 3,
    End.SKIPPED: 3,
    End.LOST: 4,
    End.UNREACHABLE: 4,
    End.INTERRUPTED: 130,
    End.SUPERSEDED: 6,
    End.PREEMPTED: 2,
}


def test_the_table_knows_every_end() -> None:
    assert set(CODES) == set(End)
    assert exit_code([]) == 0


@pytest.mark.parametrize(("one", "two"), list(combinations(End, 2)) + [(end, end) for end in End])
@pytest.mark.parametrize("held", [0, 1])
def test_where_several_hold_the_worst_is_told(one: End, two: End, held: int) -> None:
    order = (130, 1, 6, 5, 7, 3, 4, 2, 0)
    codes = [CODES[one], CODES[two], 2 if held else 0]
    outcomes = [NodeOutcome(one, held=held), NodeOutcome(two)]
    assert exit_code(outcomes) == exit_code(reversed(outcomes)) == min(codes, key=order.index)


@pytest.mark.parametrize(("better", "worse"), list(combinations(reversed(PRECEDENCE), 2)))
def test_precedence_of_every_pair(better: int, worse: int) -> None:
    assert first([better, worse]) == first([worse, better]) == worse


A_PLAN = {"type": "planned", "plan": "p", "cluster": "c", "commit": "1", "time": 1.0}
AN_END = {"type": "node-finished", "plan": "p", "node": "n", "reason": "", "data": {}}


@pytest.mark.parametrize("clock", [1.0, -86400.0])  # the wall clock goes on, or is set back between the two records
@pytest.mark.parametrize(
    ("changes", "held", "end", "later", "settled"),
    [
        (0, 0, None, "", True),
        (1, 0, None, "", False),
        (1, 0, "converged", "end", True),
        (1, 0, "converged", "plan", False),  # drifted since
        (1, 1, "converged", "end", False),
        (0, 1, "unchanged", "end", False),
        (1, 0, "failed", "end", False),
        (1, 0, "interrupted", "end", False),
        (0, 0, "lost", "plan", True),  # it was looked at since, and nothing is left to do
        (0, 0, "lost", "end", False),
    ],
)
def test_a_node_is_settled_when_nothing_is_left_to_do(
    changes: int, held: int, end: str | None, later: str, settled: bool, clock: float
) -> None:
    plan = {**A_PLAN, "nodes": {"n": {"changes": changes, "held": held}}}
    records: list[dict[str, Any]] = [{**plan, "time": 1.0}]
    if end:
        records = [plan, {**AN_END, "end": end}] if later == "end" else [{**AN_END, "end": end}, plan]
        records = [{**record, "time": 1e9 + i * clock} for i, record in enumerate(records)]
    assert status.nodes(records)["n"].settled is settled
