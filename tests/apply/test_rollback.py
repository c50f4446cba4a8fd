"""Going back to an earlier build, and cleaning up, as a person asks for it."""

from __future__ import annotations

import pytest

from reconciler.errors import Usage
from reconciler.model.outcome import End
from tests.apply.environment import NODE, Env, by_hand, env

__all__ = ["env"]


def test_a_rollback_sticks_until_the_lock_changes_or_it_is_taken_back(env: Env) -> None:
    env.lock({"alpha": "1.0"})
    env.converge()
    first = env.linked.name
    env.lock({"alpha": "2.0"})
    env.converge()
    second = env.linked.name
    assert by_hand(env, "rollback").outcomes[NODE].end is End.CONVERGED
    assert (env.linked.name, env.python("import alpha; print(alpha.VERSION)")) == (first, "1.0")
    hold = env.change().hold
    assert hold is not None
    assert (hold.code, hold.data["by"], hold.data["lock"]) == ("RolledBack", "ada@desk", second[:12])
    before = env.site.records(NODE)
    assert env.apply().outcomes[NODE].held == 1
    assert (env.linked.name, env.site.records(NODE)) == (first, before)
    assert by_hand(env, "rollback", to=second).outcomes[NODE].end is End.CONVERGED
    assert (env.linked.name, env.change().action) == (second, "none")
    by_hand(env, "rollback", to=first)
    env.lock({"alpha": "3.0"})
    env.converge()
    assert env.python("import alpha; print(alpha.VERSION)") == "3.0"


def test_a_rollback_takes_no_damaged_build_and_none_that_is_not_there(env: Env) -> None:
    env.lock({"alpha": "1.0"})
    env.converge()
    with pytest.raises(Usage, match="NoEarlierBuild"):
        by_hand(env, "rollback")
    with pytest.raises(Usage, match="NoSuchBuild"):
        by_hand(env, "rollback", to="0123456789ab-1")
    (env.site_packages() / "alpha.py").write_text("VERSION = 'x'\n")
    env.lock({"alpha": "2.0"})
    env.converge()
    second = env.linked
    ended = by_hand(env, "rollback").outcomes[NODE]
    assert "is not as it was sealed" in str(ended.data["output"])
    assert (env.linked, env.change().action) == (second, "none")


def test_clean_upby_hand(env: Env) -> None:
    for version in ("1.0", "2.0", "3.0"):
        env.lock({"alpha": version})
        env.converge()
    assert len(env.builds()) == 3
    assert by_hand(env, "gc", keep=1).outcomes[NODE].end is End.CONVERGED
    assert (env.builds(), env.change().action) == ([env.linked.name], "none")
