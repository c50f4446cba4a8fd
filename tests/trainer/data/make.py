"""Rows for tests, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.data.row import Kind, Message, Row


def turns(*words: str) -> list[Message]:
    """role, content, role, content ..."""
    return [{"role": role, "content": content} for role, content in zip(words[::2], words[1::2], strict=True)]


def row(*words: str, index: int = 0, kind: Kind = "messages") -> Row:
    """A row of these turns."""
    return Row(index, kind, "rows.jsonl", index + 1, index + 1, turns(*words))


def preference(prompt: Sequence[str], chosen: Sequence[str], rejected: Sequence[str]) -> Row:
    return Row(0, "preference", "rows.jsonl", 1, 1, [], turns(*prompt), turns(*chosen), turns(*rejected))


def question(number: int, text: str = "") -> Row:
    """A row that says its number, or `text`."""
    return row("user", text or f"question {number}", "assistant", "answer", index=number)
