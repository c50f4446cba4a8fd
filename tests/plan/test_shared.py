"""Environments that several nodes see: one builds, the others wait; what any of them uses stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.model.observed import Failure, NodeState
from reconciler.model.plan import HoldReason, Plan, Selection
from reconciler.plan.shared import waiting
from reconciler.render.reasons import sentence
from tests.plan.worlds import look, node, plan_of, state

Found = Mapping[str, Any]
BUILDER, OTHERS = "gpu01", ("gpu02", "gpu03")
OLD, NEW, OLDER = "bbbbbbbbbbbb-1", "aaaaaaaaaaaa-1", "cccccccccccc-1"
DECLARED: dict[str, dict[str, Any]] = {BUILDER: {"environment": "t", "shared": True}}
DECLARED |= {name: {**DECLARED[BUILDER], "builder": BUILDER} for name in OTHERS}
SITE = state(*(node({"declared": [said]}, name) for name, said in DECLARED.items()))
WANTED: Found = {"link": OLD, "builds": {OLD: "whole"}, "users": {OLD: []}, "needs": {}}
MADE: Found = {"link": NEW, "builds": {OLD: "whole", NEW: "whole"}}
DOWN = Failure("unreachable", "ConnectTimedOut", {"host": "10.0.0.1", "port": 22})


def plan(**found: Found | Failure | None) -> Plan:
    """A plan of three nodes; None: not asked."""
    states: dict[str, NodeState | Failure] = {}
    for name in (BUILDER, *OTHERS):
        said = found.get(name, WANTED)
        if isinstance(said, Failure):
            states[name] = said
        elif said is not None:
            case = {"declared": [DECLARED[name]], "found": said}
            states[name] = NodeState(look(SITE.nodes[name], case, Selection()), "boot", {})
    return plan_of(SITE, states)


def hold(found: Plan, name: str) -> HoldReason | None:
    (change,) = found.nodes[name].changes
    return change.hold


def spared(found: Plan) -> Any:
    return found.nodes[BUILDER].steps[-1].action["commands"][0]["arguments"]["spared"]


def test_one_node_builds_and_the_others_wait_for_it() -> None:
    found = plan()
    assert [name for name, of in found.nodes.items() if of.steps] == [BUILDER]
    assert [hold(found, name) for name in OTHERS] == [HoldReason("BuilderFirst", {"builder": BUILDER})] * 2
    assert found.waves[0].nodes == (BUILDER,)


def test_what_is_built_is_seen_by_all() -> None:
    assert plan(**dict.fromkeys((BUILDER, *OTHERS), MADE)).changes == 0


SAID: dict[str, tuple[Found | Failure | None, str]] = {
    "down": (DOWN, "gpu01 builds it for all, and could not be asked (no answer from 10.0.0.1 port 22): nobody else does"),
    "no-mount": (
        {"mounted": False},
        "gpu01 builds it for all, and is held there: environments are shared, and nothing is mounted at /opt/ai/env on this node",
    ),
    "no-wheels": (
        {**WANTED, "needs": {"wheels": {"missing": ["numpy"]}}},
        "gpu01 builds it for all, and is held there: the wheelhouse /srv/wheels lacks numpy",
    ),
    "rolled-back": ({**WANTED, "rejected": "a"}, "gpu01 builds it for all, and is held there: ada@desk rolled back from lock"),
    "not-selected": (None, "gpu01 builds it for all; this node has not seen that build yet"),
}


@pytest.mark.parametrize("how", SAID)
def test_who_waits_says_what_keeps_the_builder(how: str) -> None:
    said, words = SAID[how]
    found = plan(gpu01=said)
    for name in OTHERS:
        why = hold(found, name)
        assert why is not None
        assert sentence(why.code, why.data).startswith(words)
        assert not found.nodes[name].steps


def test_a_builder_that_is_down_holds_nobody_who_has_what_is_wanted() -> None:
    found = plan(gpu01=DOWN, gpu02=MADE)
    assert hold(found, "gpu02") is None
    assert hold(found, "gpu03") is not None


MAY_GO: dict[str, tuple[Found | Failure | None, Any]] = {
    "nobody-uses-more": (WANTED, (OLD,)),
    "a-process-there": (
        {**WANTED, "builds": {OLD: "whole", OLDER: "whole"}, "users": {OLD: [], OLDER: ["pid 9"]}},
        (OLD, OLDER),
    ),
    "down": (DOWN, None),
    "not-selected": (None, None),
    "no-mount": ({"mounted": False}, None),
    "did-not-answer": ({"raw": {"error": "deadline"}}, None),
    "said-no-users": ({"link": OLD, "builds": {OLD: "whole"}, "needs": {}}, None),
}


@pytest.mark.parametrize("how", MAY_GO)
def test_nothing_goes_that_a_node_uses_or_may_use(how: str) -> None:
    said, wanted = MAY_GO[how]
    assert spared(plan(gpu02=said)) == wanted


def test_who_waited_is_looked_at_again_only_once_the_builder_is_done() -> None:
    found = plan(gpu03=MADE)
    assert list(waiting(SITE, found.nodes, {BUILDER})) == ["gpu02"]
    assert waiting(SITE, found.nodes, {"gpu03"}) == {}
