"""What a conversation has to be before a model can learn from it: turns in order, none of them empty."""

from __future__ import annotations

from collections.abc import Sequence

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
        return _order(row.messages)
    return next((f"{name}: {wrong}" for name, wrong in _preference(row) if wrong), "")


def _preference(row: Row) -> tuple[tuple[str, str], ...]:
    """The prompt ends where the assistant answers; each answer goes on from there."""
    prompt = _order(row.prompt, ends=("user", "tool")) if row.prompt else ""
    if prompt or not row.prompt:
        return (("prompt", prompt),)
    return ("chosen", _order(row.chosen, before="user")), ("rejected", _order(row.rejected, before="user"))


def _order(turns: Sequence[Message], ends: Sequence[str] = ("assistant",), before: str = "") -> str:
    for at, turn in enumerate(turns):
        role = turn["role"]
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
