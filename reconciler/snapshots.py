"""Look at nodes whole, and keep what was found in the history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.apply.history import History
from reconciler.engine import Engine
from reconciler.model.observed import Failure
from reconciler.observe import ask
from reconciler.plan.normalise import normalise, probes


def take(
    engine: Engine, history: History, names: Iterable[str], message: str, *, asked: bool
) -> tuple[str | None, dict[str, Failure]]:
    """Record the nodes' states: the commit's id (None: nothing changed), and the nodes that could not be looked at."""

    def look(name: str) -> dict[str, Any]:
        node = engine.desired.nodes[name]
        facts, _ = ask(engine.pool.channel(name), probes(node))
        return normalise(node, facts)

    found = engine.pool.each(names, look)
    states = {name: state for name, state in found.items() if not isinstance(state, Failure)}
    failures = {name: why for name, why in found.items() if isinstance(why, Failure)}
    commit = history.record(engine.desired.cluster, states, message, asked=asked) if states else None
    return commit, failures
