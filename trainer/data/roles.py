"""What a conversation has to be before a model can learn from it: turns in order, none of them empty."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from trainer.data.row import Message, Row

# after whom a role may speak; "" is the beginning
_AFTER = {
    "system": ("",),
    "user": ("", "system", "assistant"),
    "assistant": ("user", "tool"),
    "tool": ("assistant", "tool"),
}


def order(row: Row) -> str:
    """What is wrong with the order of the row's roles, the first thing; empty where nothing is."""
    if row.kind != "preference":
        return _order(_roles(row.messages))
    return next((f"{name}: {wrong}" for name, wrong in _preference(row) if wrong), "")


def _preference(row: Row) -> tuple[tuple[str, str], ...]:
    """The prompt ends where the assistant answers; each answer goes on from there."""
    if not row.prompt or (prompt := _order(_roles(row.prompt), ("user", "tool"))):
        return (("prompt", prompt if row.prompt else ""),)
    chosen, rejected = (_order(_roles(turns), before=row.prompt[-1]["role"]) for turns in (row.chosen, row.rejected))
    return ("chosen", chosen), ("rejected", rejected)


def _roles(turns: Sequence[Message]) -> tuple[str, ...]:
    return tuple([turn["role"] for turn in turns])


@lru_cache(4096)  # rows differ in what is said, and hardly ever in who speaks
def _order(turns: tuple[str, ...], ends: tuple[str, ...] = ("assistant",), before: str = "") -> str:
    for at, role in enumerate(turns):
        if before not in _AFTER[role]:
            return f"message {at + 1} is {role}, after {before or 'nothing'}; {role} comes {_said(_AFTER[role])}"
        before = role
    if turns and before not in ends:
        return f"the last message is {before}, it has to be {' or '.join(ends)}"
    return ""


def _said(after: Sequence[str]) -> str:
    first = "first" if "" in after else ""
    others = "after " + " or ".join(role for role in after if role) if any(after) else ""
    return " or ".join(filter(None, (first, others)))


def empty(row: Row) -> str:
    """Which turn says nothing at all, or that there is none; empty where every turn has words."""
    if row.kind != "preference":
        return _empty("messages", row.messages)
    parts = (("prompt", row.prompt), ("chosen", row.chosen), ("rejected", row.rejected))
    return next(filter(None, (_empty(name, turns) for name, turns in parts)), "")


def _empty(name: str, turns: Sequence[Message]) -> str:
    if not turns:
        return f"{name} has no message"
    for at, turn in enumerate(turns):
        if not turn["content"] or turn["content"].isspace():
            return f"{name}: message {at + 1} ({turn['role']}) is empty"
    return ""
