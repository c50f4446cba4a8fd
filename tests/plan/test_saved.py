"""Saved plans: read strictly, refused when anything that they name has moved."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import ReconcileError, StalePlan, Usage
from reconciler.model.desired import Revision
from reconciler.model.observed import Failure, NodeState
from reconciler.model.plan import Plan, Selection
from reconciler.model.words import nearest
from reconciler.plan import saved
from reconciler.plan.select import select
from reconciler.plan.stale import covered, moved
from reconciler.render import data
from tests.plan.worlds import Case, look, node, plan_of, state

CASE: Case = {
    "declared": [{"file": "/etc/motd", "content": "hi\n"}, {"package": "tmux"}, {"hostname": "gpu01"}],
    "found": {"offered": ["tmux 0 3.2a 4.el9 x86_64"], "hostname": ["gpu01", "gpu01"]},
}


def plan(case: Case = CASE, **about: Any) -> Plan:
    nodes = [node(CASE, name) for name in ("gpu01", "gpu02")]
    found: dict[str, Any] = {n.name: NodeState(look(n, case, Selection()), "b") for n in nodes}
    return replace(plan_of(state(*nodes), {**found, **about.pop("nodes", {})}), **about)


def written(made: Plan) -> dict[str, Any]:
    """As the file says it."""
    found: dict[str, Any] = json.loads(json.dumps(data.plan(made, "/srv/site")))
    return found


def with_found(**changes: Any) -> Case:
    return {**CASE, "found": {**CASE["found"], **changes}}


FITS: dict[str, Plan] = {
    "the-same": plan(),
    "made-later-under-another-name": plan(id="p2", created=99.0),
    "a-node-is-down-now": plan(nodes={"gpu02": Failure("unreachable", "ConnectTimedOut")}),
    "what-it-does-not-touch-has-moved": plan(with_found(rpm=["rpm 0 4 1 x", "htop 0 1 1 x"])),
}


@pytest.mark.parametrize("fresh", FITS.values(), ids=FITS)
def test_a_plan_that_still_fits(fresh: Plan) -> None:
    assert moved(written(plan()), fresh) == ()


OTHER_FILE = with_found(files={"/etc/motd": {"content": "theirs"}})
MOVED: dict[str, tuple[Plan, list[tuple[str, str]]]] = {
    "another-commit": (plan(revision=Revision("e" * 40)), [("", "commit")]),
    "another-manifest": (plan(manifest_digest="x"), [("", "manifest digest")]),
    "another-tool": (plan(tool_version="9"), [("", "tool version")]),
    "another-cluster-and-commit": (plan(cluster="b", revision=Revision(None)), [("", "commit"), ("", "cluster")]),
    "the-header-comes-before-the-nodes": (plan(OTHER_FILE, cluster="b"), [("", "cluster")]),
    "a-file-appeared": (plan(OTHER_FILE), [("gpu01", "File//etc/motd"), ("gpu02", "File//etc/motd")]),
    "a-package-was-installed": (
        plan(with_found(rpm=["tmux 0 3.2a 4.el9 x86_64"])),
        [("gpu01", "Package/tmux"), ("gpu02", "Package/tmux")],
    ),
    "another-resource-moved": (
        plan(with_found(hostname=["gpu01", "old"])),
        [("gpu01", "Hostname/gpu01"), ("gpu02", "Hostname/gpu01")],
    ),
    "another-version-is-on-offer": (
        plan(with_found(offered=["tmux 0 3.2a 4.el9 x86_64", "tmux 0 3.3 1.el9 x86_64"])),
        [("gpu01", "Package/tmux.version (planned)"), ("gpu02", "Package/tmux.version (planned)")],
    ),
    "nothing-is-on-offer": (plan(with_found(offered=[])), [("gpu01", "Package/tmux"), ("gpu02", "Package/tmux")]),
}


@pytest.mark.parametrize(("fresh", "expected"), MOVED.values(), ids=MOVED)
def test_the_field_that_moved_is_named(fresh: Plan, expected: list[tuple[str, str]]) -> None:
    assert [(m.node, m.path) for m in moved(written(plan()), fresh)] == expected


def test_a_field_that_moved_has_both_sides() -> None:
    before = plan(with_found(hostname=["a", "b"]))
    (found, *_) = moved(written(before), plan(with_found(hostname=["a", "c"])))
    assert (found.path, found.before, found.after) == ("Hostname/gpu01.running", "b", "c")


def test_a_plan_covers_the_nodes_that_it_changes() -> None:
    assert covered(written(plan(nodes={"gpu02": Failure("unreachable", "NoRoute")}))) == ("gpu01",)


Path = tuple[str | int, ...]
WRONG: tuple[Any, ...] = (1, [], ...)
DAMAGE: list[tuple[Path, Any]] = [
    ((key,), value)
    for key in ("id", "source", "cluster", "commit", "manifestDigest", "toolVersion", "selection", "nodes", "format")
    for value in WRONG
]
DAMAGE += [(("selection", key), value) for key in ("nodes", "targets") for value in (..., "gpu01", [1], None)]
DAMAGE += [
    (("nodes", "gpu01"), 1),
    *((("nodes", "gpu01", key), value) for key in ("digest", "observed", "changes") for value in (..., 1)),
]
DAMAGE += [(("nodes", "gpu01", "observed"), {"File//a": 1}), (("nodes", "gpu01", "changes"), [1])]
DAMAGE += [
    (("nodes", "gpu01", "changes"), [{"resource": "a", "fields": what}])
    for what in (1, [1], [{"path": 1, "after": 1}], [{"path": "a"}])
]


def _damaged(path: Path, value: Any) -> str:
    found = copy.deepcopy(written(plan()))
    inner: Any = found
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(found)


@pytest.mark.parametrize(("path", "value"), DAMAGE)
def test_a_plan_file_with_one_wrong_value_is_refused(path: Path, value: Any) -> None:
    with pytest.raises(Usage, match="NotAPlan"):
        saved.parse(_damaged(path, value), "p.json")


def test_a_plan_file_of_another_version() -> None:
    with pytest.raises(StalePlan) as refused:
        saved.parse(_damaged(("format",), "reconcile-plan/2"), "p.json")
    assert (refused.value.reason, refused.value.data["version"]) == ("OtherVersion", "reconcile-plan/2")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1" * 5000, "[" * 100_000, '"a"', "{}", "\x00", '{"format": NaN}'])
def test_what_is_no_plan_at_all(text: str) -> None:
    with pytest.raises(Usage, match="NotAPlan"):
        saved.parse(text, "p.json")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=6
)


@given(st.sampled_from([path for path, _ in DAMAGE]), anything)
@settings(max_examples=200, deadline=None)
def test_hostile_values_are_refused_or_compared_and_raise_nothing_else(path: Path, value: Any) -> None:
    try:
        found = saved.parse(_damaged(path, value), "p.json")
    except ReconcileError:
        return
    for difference in moved(found, plan()):
        assert isinstance(difference.path, str)


def test_what_was_written_is_read_back() -> None:
    assert saved.parse(json.dumps(written(plan())), "p.json") == written(plan())


NEAREST = [("gpu1", "gpu01"), ("gpu02", "gpu02"), ("login", None), ("", None)]


@pytest.mark.parametrize(("word", "expected"), NEAREST)
def test_the_nearest_name(word: str, expected: str | None) -> None:
    assert nearest(word, ["gpu01", "gpu02"]) == expected


def test_a_selection_keeps_the_order_and_says_each_once() -> None:
    desired = state(node(CASE, "gpu01"), node(CASE, "gpu02"))
    found = select(desired, ["gpu02", "gpu01", "gpu02"], ["Package/tmux", "File", "File"])
    assert found == Selection(("gpu02", "gpu01"), ("Package/tmux", "File"))
    assert select(desired, [], []) == Selection()


UNKNOWN: list[tuple[list[str], list[str], str, str | None]] = [
    (["gpu1"], [], "NoSuchNode", "gpu01"),
    (["zzz"], [], "NoSuchNode", None),
    ([], ["package"], "NoSuchTarget", "Package"),
    ([], ["Package/tmus"], "NoSuchTarget", "Package/tmux"),
    ([], ["Package/"], "NoSuchTarget", "Package"),
    ([], [""], "NoSuchTarget", None),
]


@pytest.mark.parametrize(("nodes", "targets", "reason", "near"), UNKNOWN)
def test_a_name_that_is_not_declared(nodes: list[str], targets: list[str], reason: str, near: str | None) -> None:
    with pytest.raises(Usage) as refused:
        select(state(node(CASE)), nodes, targets)
    assert (refused.value.reason, refused.value.data["nearest"]) == (reason, near)
