"""What a long answer says is understood once a node, however many resources rest on it and however often they are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.facts import declared_units, packages
from reconciler.model.fact import Fact, Facts, Reading, Value
from reconciler.model.observed import NodeState
from reconciler.model.plan import Action, Selection
from reconciler.plan.build import follow_up
from reconciler.plan.scope import first_probes
from tests.plan import worlds

MANY = 30
CASES: dict[str, dict[str, Any]] = {
    "dnf": {"manager": "dnf", "found": {"rpm": [f"p{n} 0 1 1 x86_64" for n in range(MANY)]}},
    "apt": {"manager": "apt", "distribution": "debian-12", "found": {"deb": [f"ii p{n} 1-1 amd64" for n in range(MANY)]}},
}
PARSERS = {"dnf": (packages, "parse_rpm"), "apt": (packages, "parse_deb")}


def _counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, calls: Counter[str]) -> None:
    real: Callable[..., Any] = getattr(module, name)

    def counting(*args: Any) -> Any:
        calls[name] += 1
        return real(*args)

    monkeypatch.setattr(module, name, counting)


@pytest.mark.parametrize("manager", CASES)
def test_packages_and_units_are_read_once_for_the_questions_and_the_plan(manager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = [{"package": f"p{n}"} for n in range(MANY)] + [{"unit": f"u{n}.service", "state": "started"} for n in range(MANY)]
    units = {f"u{n}.service": {"is": "runs"} for n in range(MANY)}
    case = {**CASES[manager], "declared": declared}
    case["found"] = {**case["found"], "units": units}
    calls: Counter[str] = Counter()
    _counted(monkeypatch, *PARSERS[manager], calls)
    _counted(monkeypatch, declared_units, "blocks", calls)
    node, selection = worlds.node(case), Selection()
    facts = Facts(worlds.ask(first_probes(node, selection), case))
    assert follow_up(node, facts, selection) == ()
    plan = worlds.plan_of(worlds.state(node), {node.name: NodeState(facts, "boot", {})})
    assert {change.action for change in plan.nodes[node.name].changes} == {Action.NONE}
    assert calls == {PARSERS[manager][1]: 1, "blocks": 1}


def test_each_node_has_its_own_answers_and_what_is_made_of_them() -> None:
    def size(facts: Facts) -> Fact[int]:
        return Value(len(facts.readings))

    one, two = Facts({}), Facts({"a": Reading("a", (), 0.0, "boot")})
    assert (one.once(size), two.once(size), one.once(size)) == (Value(0), Value(1), Value(0))
    assert one == Facts({})
    assert repr(one) == repr(Facts({}))
