"""How many tokens each row has, with the tokenizer and the chat template that training will use. Needs transformers.

Conversations are rendered by the template and encoded in batches by the fast tokenizer, on all cores or as many as it is told, in a
thread of its own: reading goes on meanwhile.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.data.row import Message, Row

# Characters of a conversation from which it is not encoded, for that would take a hundred bytes of memory a token: it is counted as
# this many tokens, which is over every length that a model has.
HUGE = 2_000_000
BATCH = 400_000  # characters that are encoded in one call
_AHEAD = 3  # calls that may wait for the tokenizer

Count = tuple[int, int | str]  # row's index; its tokens, or why the template or the encoder does not take it


class TokenizerError(Exception):
    """The folder holds no tokenizer that can be used: what, where, and what is needed."""


def load(folder: Path, cores: int = 0) -> Any:
    """The fast tokenizer in a folder, without truncation and padding. Raises TokenizerError."""
    if not folder.is_dir():
        raise TokenizerError(f"{folder}: no such folder; a tokenizer is the folder of a model, with tokenizer.json")
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    if cores:
        os.environ["RAYON_NUM_THREADS"] = str(cores)  # read once, when the library first works
    try:
        from transformers import AutoTokenizer
    except ImportError as e:
        raise TokenizerError(f"{folder}: to count tokens needs the package transformers, which is not installed here") from e
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as e:  # the library has no base class for what it does not understand
        raise TokenizerError(f"{folder}: no tokenizer that can be read: {(str(e).splitlines() or [type(e).__name__])[0]}") from e
    if not getattr(tokenizer, "is_fast", False):
        raise TokenizerError(f"{folder}: {type(tokenizer).__name__} is not a fast tokenizer; a tokenizer.json is needed")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


class Counter:
    """Give it rows with `add`; what is counted comes back from `ready`, the rest from `finish`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._pool = ThreadPoolExecutor(2, "tokens")  # one renders while the other encodes
        self._waiting: deque[Future[list[Count]]] = deque()
        self._rows: list[tuple[int, Row]] = []
        self._size = 0

    def add(self, index: int, row: Row, characters: int) -> None:
        """One row, by whatever index its count shall come back."""
        self._rows.append((index, row))
        self._size += characters
        if self._size >= BATCH:
            self._send()

    def _send(self) -> None:
        self._waiting.append(self._pool.submit(counts, self._tokenizer, self._rows))
        self._rows, self._size = [], 0

    def ready(self) -> Iterator[Count]:
        """Of calls that ended; waits where too many have not."""
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > _AHEAD):
            yield from self._waiting.popleft().result()

    def finish(self) -> Iterator[Count]:
        """All that is left."""
        if self._rows:
            self._send()
        while self._waiting:
            yield from self._waiting.popleft().result()
        self._pool.shutdown()


def counts(tokenizer: Any, rows: Sequence[tuple[int, Row]]) -> list[Count]:
    """Tokens of each row; of a preference the longer of its two conversations."""
    both = [(index, conversation) for index, row in rows for conversation in row.conversations()]
    found: dict[int, int | str] = {}
    owners: list[int] = []
    texts: list[str] = []
    for (index, _), text in zip(both, rendered(tokenizer, [conversation for _, conversation in both]), strict=True):
        if isinstance(text, Refusal):
            found[index] = text.why
        elif len(text) > HUGE:
            found[index] = HUGE
        else:
            owners.append(index)
            texts.append(text)
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    for index, one in zip(owners, encoded, strict=True):
        before = found.get(index, 0)
        if isinstance(before, int):
            found[index] = max(before, len(one))
    return [(index, found[index]) for index, _ in rows]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a chat template says of a conversation that it does not take."""

    why: str


def rendered(tokenizer: Any, conversations: list[list[Message]]) -> list[str | Refusal]:
    """Every conversation as the chat template writes it, or why it does not."""
    try:
        return list(tokenizer.apply_chat_template(conversations, tokenize=False))
    except Exception:  # noqa: BLE001  (a template raises what it likes: find out which conversation it was)
        return [_rendered(tokenizer, conversation) for conversation in conversations]


def _rendered(tokenizer: Any, conversation: list[Message]) -> str | Refusal:
    try:
        return str(tokenizer.apply_chat_template(conversation, tokenize=False))
    except Exception as e:  # noqa: BLE001  (told to the person, with the row)
        return Refusal((str(e).splitlines() or [type(e).__name__])[0])
