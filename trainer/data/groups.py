"""Which rows are equal and which are nearly: rows with the same key, then rows whose sketches agree (LSH with 16 bands of 4).

Two rows are compared when one of 16 bands of four slots is equal in both: a pair of similarity 0.8 is seen with probability
1 - (1 - 0.8**4)**16 = 0.9998, one of 0.3 with 0.12 and then told apart by its sketch. Memory is a few tens of bytes a row; what is
sorted at one time is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.data.ledger import Ledger
from trainer.data.sketch import SLOTS

NEAR = 0.8  # share of slots from which two rows are called nearly equal
BANDS = SLOTS // 4
_SORTED = 3_000_000  # keys that are sorted at one time
_PAIRS = 50_000  # pairs whose sketches are in memory at one time

Keys = Callable[[np.ndarray], np.ndarray]
# every row but the first of its group, that first one, and the one before it in the group
Alike = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Pair:
    """`row` is like `first`, which came before it: 1.0 is equal."""

    first: int
    row: int
    similarity: float


@dataclass(frozen=True)
class Groups:
    """`equal` and `near`: for each row the first row of its group, maybe itself. Near groups hold equal rows as well."""

    equal: np.ndarray
    near: np.ndarray
    pairs: tuple[Pair, ...]  # of the nearly equal, the first ones by row


def groups(ledger: Ledger, examples: int = 20) -> Groups:
    """The groups of all rows that the ledger holds, and the first pairs of nearly equal ones."""
    forest = np.arange(len(ledger), dtype=np.uint32)
    for rows, firsts, _ in _alike(ledger, [lambda records: records["key"]], np.zeros(len(forest), bool)):
        forest[rows] = firsts
    equal = forest.copy()
    repeated = equal != np.arange(len(equal), dtype=np.uint32)
    pairs: list[Pair] = []
    for rows, firsts, before in _alike(ledger, [_band(number) for number in range(BANDS)], repeated):
        _unite(ledger, forest, firsts, rows, pairs)
        _unite(ledger, forest, before, rows, pairs)  # not all of a group need be like its first
        pairs = sorted(pairs, key=lambda pair: (pair.row, pair.first))[:examples]
    return Groups(equal, _roots(forest, np.arange(len(forest), dtype=np.uint32)), tuple(pairs))


def _band(number: int) -> Keys:
    """Four slots of 16 bits are one number of 64 bits as they stand."""
    return lambda records: np.ascontiguousarray(records["sketch"]).view("<u8")[:, number]


def _alike(ledger: Ledger, kinds: Sequence[Keys], left_out: np.ndarray) -> Iterator[Alike]:
    """Rows with equal keys, of one kind of key after the other. A key of 0 is none; rows that are `left_out` are not looked at."""
    parts = max(-(-len(ledger) // _SORTED), 1)
    at_once = max(_SORTED // max(len(ledger), 1), 1)  # kinds that are read in one go through the ledger
    for first in range(0, len(kinds), at_once):
        some = kinds[first : first + at_once]
        for part in range(parts):
            found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in some]
            for begin, records in ledger.pieces():
                for keys, kept in zip(some, found, strict=True):
                    these = keys(records)
                    wanted = (these != 0) & ~left_out[begin : begin + len(these)]
                    if parts > 1:
                        wanted &= ((these >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32) == np.uint64(part)
                    kept.append((these[wanted], (np.flatnonzero(wanted) + begin).astype(np.uint32)))
            for kept in filter(None, found):
                yield _grouped(np.concatenate([keys for keys, _ in kept]), np.concatenate([rows for _, rows in kept]))


def _grouped(keys: np.ndarray, rows: np.ndarray) -> Alike:
    order = np.argsort(keys)
    keys, rows = keys[order], rows[order]
    same = keys[1:] == keys[:-1]
    shared = np.zeros(len(keys), bool)
    shared[1:] |= same
    shared[:-1] |= same
    keys, rows = keys[shared], rows[shared]
    order = np.lexsort((rows, keys))  # only of those that share a key: the first sort does not keep the order of rows
    keys, rows = keys[order], rows[order]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(rows)])
    firsts = np.repeat(rows[begins], np.diff(np.append(begins, len(rows))))
    later = firsts != rows
    return rows[later], firsts[later], np.roll(rows, 1)[later]


def _unite(ledger: Ledger, forest: np.ndarray, firsts: np.ndarray, rows: np.ndarray, pairs: list[Pair]) -> None:
    """Join the groups of every pair whose sketches agree in NEAR of their slots; those already in one group cost nothing."""
    for begin in range(0, len(rows), _PAIRS):
        earlier, later = firsts[begin : begin + _PAIRS], rows[begin : begin + _PAIRS]
        apart = _roots(forest, earlier) != _roots(forest, later)
        earlier, later = earlier[apart], later[apart]
        if not len(later):
            continue
        similar = (ledger.pick(earlier)["sketch"] == ledger.pick(later)["sketch"]).mean(axis=1)
        for at in np.flatnonzero(similar >= NEAR):
            first, row = int(earlier[at]), int(later[at])
            low, high = sorted((_root(forest, first), _root(forest, row)))
            if low != high:
                forest[high] = low
                pairs.append(Pair(first, row, float(similar[at])))


def _root(forest: np.ndarray, row: int) -> int:
    while (above := int(forest[row])) != row:
        forest[row] = row = int(forest[above])
    return row


def _roots(forest: np.ndarray, rows: np.ndarray) -> np.ndarray:
    found = forest[rows]
    while not np.array_equal(found, above := forest[found]):
        found = above
    return found
