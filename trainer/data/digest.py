"""What makes two rows the same: a digest of what would be learned, whatever format or file it stood in."""

from __future__ import annotations

import hashlib

from trainer.data.row import Message, Row

SIZE = 16  # bytes: among 10**10 different rows two that agree by chance are less likely than 1 in 10**18


def content(row: Row) -> bytes:
    """All that is learned from a row as bytes: roles, texts and where one ends, so that no two different rows give the same."""
    if row.kind != "preference":
        return _turns(row.messages)
    return b"\x1d".join(map(_turns, (row.prompt, row.chosen, row.rejected)))


def _turns(messages: list[Message]) -> bytes:
    # lengths, for a text may hold any character that could be put between
    return "".join([f"{m['role']}\x1f{len(m['content'])}\x1f{m['content']}\x1e" for m in messages]).encode()


def of(whole: bytes) -> bytes:
    """SIZE bytes for what `content` gives."""
    return hashlib.blake2b(whole, digest_size=SIZE).digest()


class DataDigest:
    """The digest of a whole source: its rows in their order. The same for equal rows in another format, packing or folder."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, digest: bytes) -> None:
        self._hash.update(digest)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
