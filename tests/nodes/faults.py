"""What can go wrong between a controller and a node, for `Site.before`; and how nodes ended, in short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.outcome import NodeOutcome

Answer = Mapping[str, Any] | None
THREE = ("a", "b", "c")


def ends(outcomes: Mapping[str, NodeOutcome]) -> dict[str, str]:
    return {name: o.end.value + (f" {o.reason}" if o.reason else "") for name, o in sorted(outcomes.items())}


def once(node: str, op: str, act: Callable[[], Answer]) -> Callable[[str, str, Mapping[str, Any]], Answer]:
    """Do something in the place of, or before, the first such request."""
    left = [(node, op)]

    def before(name: str, asked: str, fields: Mapping[str, Any]) -> Answer:
        if (name, asked) in left:
            left.remove((name, asked))
            return act()
        return None

    return before


def raising(error: Exception) -> Callable[[], Answer]:
    def act() -> Answer:
        raise error

    return act
