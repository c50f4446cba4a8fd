"""What is counted while rows go by, and the first places of everything that is wrong."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from trainer.data import roles
from trainer.data.language import language
from trainer.data.ledger import one_line
from trainer.data.lengths import Lengths
from trainer.data.report import Example, Finding
from trainer.data.row import Malformed, Row

_UNREAD = 20  # names of unread keys that are counted one by one; data with more have values as keys
_TEXT = 160  # characters of a row's text in an example


class Tally:
    """Counts of one check. `show`: how many places of each finding are kept."""

    def __init__(self, show: int) -> None:
        self._show = show
        self.rows = 0
        self.formats: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.characters, self.tokens = Lengths(), Lengths()
        self.counts: Counter[str] = Counter()
        self._examples: defaultdict[str, list[Example]] = defaultdict(list)
        self._longest: list[tuple[int, int]] = []
        self.samples: dict[str, Example] = {}  # the first row of each language
        self.first: dict[str, Example] = {}  # and of each format

    def note(self, code: str, example: Example) -> None:
        """One more of a finding."""
        self.counts[code] += 1
        if len(self._examples[code]) < self._show:
            self._examples[code].append(example)

    def malformed(self, found: Malformed) -> None:
        self.note("Malformed", Example(found.where, found.why))

    def batch(self, batch: Sequence[tuple[Row, str, bytes]]) -> None:
        """Some rows, each with what is said in it, as text and in UTF-8."""
        spoken = [language(raw) for _, _, raw in batch]
        self.rows += len(batch)
        self.formats.update([row.kind for row, _, _ in batch])
        self.languages.update(spoken)
        self.characters.add_all([len(text) for _, text, _ in batch])
        for (row, _, raw), language_of_row in zip(batch, spoken, strict=True):
            if row.kind not in self.first:
                self.first[row.kind] = Example(row.where, row.kind, excerpt(raw))
            if language_of_row not in self.samples:
                self.samples[language_of_row] = Example(row.where, language_of_row, excerpt(raw))
            if row.unread:
                self._unread(row)
            if wrong := roles.empty(row):
                self.note("Empty", Example(row.where, wrong, excerpt(raw)))
            if wrong := roles.order(row):
                self.note("RoleOrder", Example(row.where, wrong, excerpt(raw)))

    def _unread(self, row: Row) -> None:
        for key in row.unread:
            if key in self.unread or len(self.unread) < _UNREAD:
                self.unread[key] += 1
        self.counts["UnreadKeys"] += 1

    def length(self, row: int, tokens: int, max_length: int) -> None:
        """One row's tokens."""
        self.tokens.add(tokens)
        if max_length and tokens > max_length:
            self.counts["OverLength"] += 1
            heapq.heappush(self._longest, (tokens, -row))
            if len(self._longest) > self._show:
                heapq.heappop(self._longest)

    def findings(self, where: Callable[[int], str]) -> dict[str, Finding]:
        """What was noted, by its code; `where` says a row's place."""
        kept: dict[str, list[Example]] = {code: self._examples[code] for code in self.counts}
        kept["OverLength"] = [Example(where(-row), f"{tokens:,} tokens") for tokens, row in sorted(self._longest, reverse=True)]
        kept["UnreadKeys"] = [Example(key, f"{count:,} rows") for key, count in self.unread.most_common()]
        return {code: Finding(code, count, tuple(kept[code])) for code, count in self.counts.items()}


def excerpt(text: bytes) -> str:
    """How a text begins, on one line."""
    line = one_line(text[: 4 * _TEXT])
    return line[:_TEXT] + ("…" if len(line) > _TEXT or len(text) > 4 * _TEXT else "")
