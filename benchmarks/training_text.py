"""Made-up training data in Chinese and English for measurements: as many bytes as asked for, from a seed, no row like another.

Words are made of letters, and drawn as often as in a real text (the n-th word one n-th as often as the first), so that a tokenizer
finds common words and rare ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_ENGLISH, _CHINESE = 50_000, 20_000  # different words


class Words:
    """Texts from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._english = [self._word(97, 26, 2, 11) for _ in range(_ENGLISH)]
        self._chinese = [self._word(0x4E00, 6000, 1, 4) for _ in range(_CHINESE)]

    def _word(self, first: int, letters: int, shortest: int, longest: int) -> str:
        size = self._random.integers(shortest, longest)
        return "".join(chr(first + int(letter)) for letter in self._random.integers(0, letters, size))

    def text(self, count: int, chinese: bool) -> str:
        """So many words, half of them common; a sign after every twelfth or so."""
        words = self._chinese if chinese else self._english
        common = np.minimum(self._random.zipf(1.3, count) - 1, len(words) - 1)
        rare = self._random.integers(0, len(words), count)
        chosen = np.where(self._random.random(count) < 0.5, common, rare)
        signs = self._random.random(count) < 1 / 12
        parts = [words[at] + (("。" if chinese else ".") if sign else "") for at, sign in zip(chosen, signs, strict=True)]
        return ("" if chinese else " ").join(parts)

    def rows(self, words: int) -> Iterator[bytes]:
        """Lines without end, of `words` words in the mean; every second is Chinese."""
        chinese = False
        while True:
            count = int(self._random.integers(words // 8 + 2, 2 * words - words // 8))
            asked, told = (self.text(part, chinese) for part in (count // 4 + 1, count - count // 4))
            turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]
            yield json.dumps({"messages": turns}, ensure_ascii=False).encode() + b"\n"
            chinese = not chinese


def write_large(path: Path, size: int, seed: int = 1) -> int:
    """The same quickly, in English: 20 MB again and again, each time in other letters, so that no row is like another."""
    words, draw = Words(seed), np.random.default_rng(seed)
    texts = [
        tuple(words.text(size, False).encode() for size in (count // 4 + 1, count)) for count in draw.integers(15, 180, 20_000)
    ]
    head, middle, tail = (
        b'{"messages": [{"role": "user", "content": "',
        b'"}, {"role": "assistant", "content": "',
        b'"}]}\n',
    )
    letters = bytes(range(97, 123))
    written = count = 0
    with path.open("wb", buffering=1 << 22) as file:
        while written < size:
            other = bytes.maketrans(letters, bytes(draw.permutation(list(letters)).tolist()))
            for asked, told in texts:
                written += file.write(head + asked.translate(other) + middle + told.translate(other) + tail)
                count += 1
    return count


def write(path: Path, size: int, words: int = 120, seed: int = 1) -> int:
    """Write at least `size` bytes; how many rows that are."""
    written = count = 0
    with path.open("wb") as file:
        for line in Words(seed).rows(words):
            file.write(line)
            written += len(line)
            count += 1
            if written >= size:
                return count
    raise AssertionError("rows have no end")
