"""What each tool wrote about two nodes, one drifted by hand, is understood alike. The outputs are recorded, ours shortened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers import work
from benchmarks.peers.installed import REQUIREMENTS, Peers
from benchmarks.peers.measure import Unequal, compare, normal
from benchmarks.peers.tools import Ansible, Ours, Pyinfra, Seen, Tool
from benchmarks.peers.work import Endpoint

DATA = Path(__file__).parent.parent / "data" / "peers"
ENDPOINTS = (Endpoint("gpu01", "10.89.0.11", 2201), Endpoint("gpu02", "10.89.0.12", 2202))
PEERS = Peers(Path("/nowhere"))
DRIFT = frozenset(task for _, task in work.DRIFT)
RECORDED: dict[str, tuple[Tool, str]] = {
    "reconcile": (Ours(Path("/nowhere"), ENDPOINTS), "json"),
    "ansible": (Ansible(Path("/nowhere"), PEERS, ENDPOINTS), "txt"),
    "pyinfra": (Pyinfra(Path("/nowhere"), PEERS, ENDPOINTS), "txt"),
}


def _outputs(name: str) -> tuple[Tool, Sequence[str]]:
    tool, ending = RECORDED[name]
    return tool, [(DATA / f"{name}-{part}.{ending}").read_text() for part in work.PARTS]


def _seen(name: str) -> dict[str, Seen]:
    tool, outputs = _outputs(name)
    return tool.read(outputs)


@pytest.mark.parametrize("name", RECORDED)
def test_every_drift_is_seen_where_it_is_and_nothing_else(name: str) -> None:
    seen = _seen(name)
    assert {node: one.changes for node, one in seen.items()} == {"gpu01": DRIFT, "gpu02": frozenset()}


@pytest.mark.parametrize("name", RECORDED)
def test_the_facts_are_the_same_twenty(name: str) -> None:
    ours, theirs = _seen("reconcile"), _seen(name)
    for node in ("gpu01", "gpu02"):
        assert set(theirs[node].facts) == set(work.FACTS)
        assert normal(theirs[node].facts) == normal(ours[node].facts)


@pytest.mark.parametrize("name", RECORDED)
def test_one_fact_or_one_change_that_differs_is_unequal(name: str) -> None:
    tool, outputs = _outputs(name)
    seen = tool.read(outputs)
    facts = {node: normal(one.facts) for node, one in seen.items()}
    changes = {"gpu01": DRIFT, "gpu02": frozenset[str]()}
    compare(tool, seen, changes, facts)
    for less in DRIFT:
        with pytest.raises(Unequal, match="would change"):
            compare(tool, seen, {**changes, "gpu01": DRIFT - {less}}, facts)
    for fact in work.FACTS:
        with pytest.raises(Unequal, match="other facts"):
            compare(tool, seen, changes, {**facts, "gpu02": {**facts["gpu02"], fact: "another"}})
    with pytest.raises(Unequal, match="looked at"):
        compare(tool, seen, {"gpu01": DRIFT}, facts)


@pytest.mark.parametrize("name", RECORDED)
def test_each_part_is_one_call_that_changes_nothing(name: str) -> None:
    tool, _ = _outputs(name)
    calls = tool.calls()
    assert tuple(call.part for call in calls) == work.PARTS
    harmless = {"reconcile": {"plan", "observe"}, "ansible": {"--check"}, "pyinfra": {"--dry"}}[name]
    for call in calls:
        assert harmless & set(call.argv)
        assert not {"-y", "--yes", "apply"} & set(call.argv)


def test_nothing_of_the_caller_steers_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANSIBLE_FORKS", "PYINFRA_YES", "RECONCILE_DEBUG", "PYTHONPATH", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "foreign")
    for tool, _ in RECORDED.values():
        for call in tool.calls():
            assert "foreign" not in call.whole_environment().values()


def test_the_peers_are_pinned() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(line.count("==") == 1 for line in lines)
    assert {"ansible-core", "mitogen", "pyinfra"} <= {line.split("==")[0] for line in lines}


def test_recorded_outputs_of_ours_have_the_shape_of_today() -> None:
    plan = json.loads((DATA / "reconcile-plan.json").read_text())
    resources = {change["resource"] for change in plan["nodes"]["gpu02"]["changes"]}
    assert len(resources) == work.RESOURCES
    assert {work.task_of(resource) for resource in resources} == set(work.TASKS)
