"""Training and validation: decided by what a row says and a seed, never by where it stands.

Rows are ranked by a digest of their content, mixed with the seed; the lowest ranks are validation. So equal rows are always on one
side, the order of the rows does not matter, and another seed gives another split.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence

from trainer.data import digest
from trainer.data.row import Row

LARGEST = 2**64 - 1
# MurmurHash3's last mixing of 64 bits: one-to-one, so that different contents have different ranks
SHIFT, FACTORS = 33, (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_BUCKETS = 16  # bits of a rank that are counted first, so that only one bucket in 65,536 has to be sorted


def split(rows: Iterable[Row], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Positions (training, validation), each ascending, of rows counted from 0 as they come; `share` of them are validation.

    As near to `share` as whole groups of equal rows allow, and never a side without rows where there are two different ones.
    0 gives all to training. Raises ValueError for a share that is not in 0 <= share < 1.
    """
    ranks = array("Q", (rank(digest.of(digest.content(row)), seed) for row in rows))
    below = border(ranks, share)
    training = [at for at, found in enumerate(ranks) if found >= below]
    return training, [at for at, found in enumerate(ranks) if found < below]


def rank(content_digest: bytes, seed: int) -> int:
    """A row's place in the order of this seed: 64 bits."""
    found = int.from_bytes(content_digest[-8:], "little") ^ key(seed)
    for factor in FACTORS:
        found = (found ^ found >> SHIFT) * factor & LARGEST
    return found ^ found >> SHIFT


def key(seed: int) -> int:
    """A number of 64 bits that two seeds do not share."""
    return int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")


def border(ranks: Sequence[int], share: float) -> int:
    """The rank that validation lies below; 0 where nothing is validation."""
    if not 0 <= share < 1:
        raise ValueError(f"share is {share}: allowed is 0 (train on everything) up to, but not including, 1")
    wanted = round(len(ranks) * share)
    if share == 0 or len(ranks) < 2:
        return 0
    wanted = max(wanted, 1)
    counts = [0] * (1 << _BUCKETS)
    shift = 64 - _BUCKETS
    for found in ranks:
        counts[found >> shift] += 1
    bucket = before = 0
    while before + counts[bucket] < wanted:
        before += counts[bucket]
        bucket += 1
    return _nearest(sorted(found for found in ranks if found >> shift == bucket), before, wanted, ranks)


def _nearest(inside: Sequence[int], before: int, wanted: int, ranks: Sequence[int]) -> int:
    """The border, next to the rank that is `wanted`th, that leaves the share nearest to what was asked for."""
    at = wanted - before - 1
    low = inside[at]
    begin, end = inside.index(low), at + 1
    while end < len(inside) and inside[end] == low:
        end += 1
    without, having = before + begin, before + end
    take = having - wanted <= wanted - without if without else True
    if take and having == len(ranks):
        take = False  # the last group: training needs it
    return low + 1 if take else low
