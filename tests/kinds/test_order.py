"""In which order the kinds stand on a node. It is said, kind by kind: none follows from a name."""

from __future__ import annotations

from typing import Any

from reconciler.kinds import KINDS
from tests.plan.worlds import resource

ORDER: list[dict[str, Any]] = [
    {"hostname": "gpu01"},
    {"hosts": {"gpu01": "10.0.0.1"}},
    {"file": "/etc/yum.repos.d/a.repo", "repository": True},
    {"package": "tmux"},
    {"driver": "580.95.05"},
    {"file": "/etc/motd"},
    {"environment": "t"},
    {"unit": "a.service"},
]


def test_each_kind_has_a_rank_of_its_own() -> None:
    declared = [resource(said) for said in ORDER]
    ranks = [KINDS[r.id.kind].rank(r.spec) for r in declared]
    assert {r.id.kind for r in declared} == set(KINDS)
    assert ranks == sorted(set(ranks))
