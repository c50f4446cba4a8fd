"""How long rows are: exact sums, and a histogram that takes little memory whatever it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
        self._lost = self._largest = 0  # what the rounding of long ones took from the sum; the largest of them

    def add(self, length: int) -> None:
        if length < _EXACT:
            self._counts[length] += 1
            return
        shift = length.bit_length() - _EXACT.bit_length() + 1
        rounded = length >> shift << shift
        self._counts[rounded] += 1
        self._lost += length - rounded
        self._largest = max(self._largest, length)

    def add_all(self, lengths: Sequence[int]) -> None:
        """Several at once, which is quicker where all are short."""
        if max(lengths, default=0) < _EXACT:
            self._counts.update(lengths)
        else:
            for length in lengths:
                self.add(length)

    def summary(self) -> Summary | None:
        """None where there was no row."""
        if not self._counts:
            return None
        rows, total = self._counts.total(), sum(length * count for length, count in self._counts.items()) + self._lost
        median, p95, p99 = (self._percentile(share * rows) for share in (0.5, 0.95, 0.99))
        bars = tuple(self._bars(p99))
        return Summary(total, round(total / rows, 2), max(self._largest, *self._counts), median, p95, p99, bars)

    def _percentile(self, wanted: float) -> int:
        seen = 0
        for length in sorted(self._counts):
            seen += self._counts[length]
            if seen >= wanted:
                return length
        raise AssertionError("no more is wanted than there is")

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
