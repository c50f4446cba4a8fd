"""How long rows are: exact sums, and a histogram that takes little memory whatever it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_EXACT = 2048  # lengths below are counted one by one; above with eleven significant bits, so within 0.1%
_BARS = 40
_NICE = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """`count` rows are at least `low` and less than `high` long; the last bar of a histogram has no end."""

    low: int
    high: int | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Of all rows, in the unit that was counted. The percentiles are within 0.1%, everything else is exact."""

    total: int
    mean: float
    largest: int
    median: int
    p95: int
    p99: int
    histogram: tuple[Bar, ...]


class Lengths:
    """Counts one length after another."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._rows = self._total = self._largest = 0

    def add(self, length: int) -> None:
        shift = max(length.bit_length() - _EXACT.bit_length() + 1, 0)
        self._counts[length >> shift << shift] += 1
        self._rows += 1
        self._total += length
        self._largest = max(self._largest, length)

    def summary(self) -> Summary | None:
        """None where there was no row."""
        if not self._rows:
            return None
        median, p95, p99 = (self._percentile(share) for share in (0.5, 0.95, 0.99))
        bars = tuple(self._bars(p99))
        return Summary(self._total, round(self._total / self._rows, 2), self._largest, median, p95, p99, bars)

    def _percentile(self, share: float) -> int:
        wanted, seen = share * self._rows, 0
        for length in sorted(self._counts):
            seen += self._counts[length]
            if seen >= wanted:
                return length
        raise AssertionError("a share is at most 1")

    def _bars(self, nearly_all: int) -> Iterator[Bar]:
        """Bars of one width, a round number, up to what nearly all rows have; one more for the others."""
        width = _round(nearly_all / _BARS)
        last = nearly_all // width
        counts: Counter[int] = Counter()
        for length, count in self._counts.items():
            counts[min(length // width, last + 1)] += count
        for number in range(last + 1):
            yield Bar(number * width, (number + 1) * width, counts[number])
        if counts[last + 1]:
            yield Bar((last + 1) * width, None, counts[last + 1])


def _round(width: float) -> int:
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 1
    while power * 10 < width:
        power *= 10
    return next(nice * power for nice in _NICE if nice * power >= width or nice == _NICE[-1])
