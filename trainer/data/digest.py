"""What makes two rows the same: a digest of what would be learned, whatever format or file it stood in."""

from __future__ import annotations

import hashlib

from trainer.data.row import Message, Row

SIZE = 16  # bytes: among 10**10 different rows two that agree by chance are less likely than 1 in 10**18


def said(row: Row) -> str:
    """All that is said in a row, without system prompts: rows that share only those are not alike."""
    turns: list[Message] = row.messages or [*row.prompt, *row.chosen, *row.rejected]
    return "\n".join([turn["content"] for turn in turns if turn["role"] != "system"])


def content(row: Row, text: bytes | None = None) -> bytes:
    """All that is learned from a row, as bytes. `text` is what `said` gives, in UTF-8, for who has it already."""
    return _shape(row).encode() + b"\n" + (said(row).encode() if text is None else text)


def of(whole: bytes) -> bytes:
    """SIZE bytes for what `content` gives."""
    return hashlib.blake2b(whole, digest_size=SIZE).digest()


def _shape(row: Row) -> str:
    """Who says how much of it, and system prompts: so that no two different rows give the same bytes."""
    if row.kind != "preference":
        return _turns(row.messages)
    return "".join(f"{name}{_turns(turns)}" for name, turns in (("p", row.prompt), ("c", row.chosen), ("r", row.rejected)))


def _turns(messages: list[Message]) -> str:
    said = ",".join([f"{message['role']}{len(message['content'])}" for message in messages])
    if "system" in said:
        said += "".join([f":{message['content']}" for message in messages if message["role"] == "system"])
    return f"[{said}]"


class DataDigest:
    """The digest of a whole source: its rows in their order. The same for equal rows in another format, packing or folder."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, digests: bytes) -> None:
        """Of one or more rows, one after the other."""
        self._hash.update(digests)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
