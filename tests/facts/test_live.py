"""Every live fact of a host: answers in, values, their stable part and their one line out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts.catalogue import BY_NAME
from reconciler.facts.formats import plain
from reconciler.facts.live import selected
from reconciler.render.headlines import headline
from reconciler.render.reasons import _SENTENCES
from tests.facts.live import ABOUT, at, cases, raws

HERE = Path(__file__).parents[2] / "reconciler" / "facts"
CASES = [pytest.param(case, id=case["name"]) for case in cases()]
HOST = {case["fact"] for case in cases()}


@pytest.mark.parametrize("case", CASES)
def test_a_case(case: Mapping[str, Any]) -> None:
    fact = BY_NAME[case["fact"]]
    found = plain(fact.read(raws(case)))
    assert {path: at(found, path) for path in case["expect"]} == case["expect"]
    if "stable" in case:
        assert selected(fact, found) == case["stable"]
    if "headline" in case:
        assert headline(fact.name, found) == case["headline"]


@pytest.mark.parametrize("name", sorted(HOST))
def test_a_probe_does_not_depend_on_chance(name: str) -> None:
    assert BY_NAME[name].probe(ABOUT) == BY_NAME[name].probe(ABOUT)


COUNTERS = [
    ("links", "eth0 > counters", {"rx_bytes": 1}),
    ("links", "eth0 > carrier_changes", 99),
    ("rdma", "adapters > mlx5_0 > ports > 1 > counters > symbol_error", 5),
    ("rdma", "adapters > mlx5_1 > ports > 1 > hw_counters > out_of_sequence", 8),
    ("mounts", "0 > bytes > used", 1),
    ("mounts", "0 > id", 5),
    ("mounts", "1 > options", []),
    ("limits", "groups > 0 > pids", [9]),
    ("limits", "groups > 1", {"unit": {"absent": "NoUnit"}}),
    ("hardware", "memory > huge_pages_free", 0),
    ("time-sync", "tracking > last_offset_s", 0.1),
    ("units", "sshd.service > main_pid", 9),
    ("units", "sshd.service > restarts", 9),
    ("slurm", "node > nodes > 0 > free_memory_mib", 9),
]
STATE = [
    ("links", "eth0 > mtu", 9000),
    ("rdma", "adapters > mlx5_0 > ports > 1 > state", "DOWN"),
    ("mounts", "0 > options", ["ro"]),
    ("mounts", "6 > source", "other:/home"),
    ("limits", "groups > 0 > limits > memlock", {"soft": "unlimited", "hard": "unlimited"}),
    ("hardware", "memory > total", 1),
    ("time-sync", "tracking > synced", False),
    ("units", "sshd.service > active", "failed"),
    ("units", "sshd.service > file_state", "disabled"),
    ("slurm", "node > nodes > 0 > states", ["IDLE"]),
    ("kernel", "next > driver", None),
    ("disks", "md0 > array > degraded", 0),
    ("sysctl", "values > vm.swappiness", "1"),
]


def _changed(name: str, path: str, value: Any) -> tuple[Any, Any]:
    """The stable part before and after one field of the fact's first case moved."""
    fact = BY_NAME[name]
    case = next(case for case in cases() if case["fact"] == name)
    before, after = (plain(fact.read(raws(case))) for _ in range(2))
    front, _, last = path.rpartition(" > ")
    place = at(after, front)
    key: Any = int(last) if isinstance(place, list) else last
    assert place[key] != value
    place[key] = value
    return selected(fact, before), selected(fact, after)


@pytest.mark.parametrize(("name", "path", "value"), COUNTERS)
def test_what_moves_by_itself_is_no_state(name: str, path: str, value: Any) -> None:
    before, after = _changed(name, path, value)
    assert before == after


@pytest.mark.parametrize(("name", "path", "value"), STATE)
def test_what_somebody_changed_is_state(name: str, path: str, value: Any) -> None:
    before, after = _changed(name, path, value)
    assert before != after


def _reasons(value: Any) -> set[str]:
    """Every reason in a plain value."""
    if isinstance(value, dict):
        own = {value[key] for key in ("absent", "unknown") if isinstance(value.get(key), str)}
        return own.union(*map(_reasons, value.values()))
    return set().union(*map(_reasons, value)) if isinstance(value, list) else set()


def test_what_is_absent_or_unknown_says_why_in_words() -> None:
    told = {reason for case in cases() for reason in _reasons(plain(BY_NAME[case["fact"]].read(raws(case))))}
    texts = [text for file in HERE.glob("*.py") if "LiveFact(" in (text := file.read_text())]
    written = {reason for text in texts for reason in re.findall(r'\bAbsent\("(\w+)"\)', text)}
    assert len(told) > 40
    assert len(written) > 20
    assert {reason for reason in told | written if reason not in _SENTENCES} == set()
