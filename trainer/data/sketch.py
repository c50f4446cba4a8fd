"""Sketches: 64 small numbers for each text, equal in as many places as two texts have in common (MinHash, one permutation).

A text is taken without case, white space and ASCII punctuation, as all its pieces of WIDTH bytes. Each piece has a hash: six bits
of it choose a slot, 32 others are a number, and a slot keeps the smallest. The share of equal slots of two sketches estimates the
Jaccard similarity J of the two sets of pieces, with a standard error of sqrt(J (1 - J) / 64): 0.05 at 0.8,
and more for a text of less than 64 pieces. A slot that got nothing
borrows from the next one that has something (densification by rotation: Shrivastava and Li, ICML 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

SLOTS = 64
WIDTH = 8  # bytes: about two English words without the space between, or two and a half Chinese characters
SHORTEST = 32  # bytes of a text after _plain; one changed letter of a shorter one already leaves less than half in common
# bytes worked on at once: as 64-bit numbers 64 KB, which a core's cache holds and malloc gives without the kernel
_PIECE = 8 * 1024
_EMPTY = np.uint32(0xFFFFFFFF)
_SLOT = np.arange(SLOTS, dtype=np.int16)[:, None]
# odd 64-bit constants of the xxHash and splitmix families: any that mix well do
_FIRST, _SECOND, _BORROWED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint32(0x85EBCA6B)
_LOWER = bytes(c + 32 if 0x41 <= c <= 0x5A else c for c in range(256))
_DROPPED = bytes(c for c in range(128) if not chr(c).isalnum())


def _plain(text: bytes) -> bytes:
    return text.translate(_LOWER, _DROPPED)


def sketches(texts: Sequence[bytes]) -> np.ndarray:
    """(len(texts), SLOTS) uint16; a text that is too short for a sketch has zeros alone."""
    smallest = np.full(len(texts) * SLOTS, _EMPTY, np.uint32)
    plain = [_plain(text) for text in texts]
    for group in _groups(plain):
        _take(group, smallest)
    found = _mixed(_dense(smallest.reshape(-1, SLOTS)))
    found[[len(text) < SHORTEST for text in plain]] = 0
    return found


def _groups(plain: Sequence[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """(text, piece of it) in groups of about _PIECE bytes. Pieces of a long text overlap, so that nothing between two is lost."""
    group: list[tuple[int, bytes]] = []
    size = 0
    for number, text in enumerate(plain):
        if len(text) < SHORTEST:
            continue
        for begin in range(0, len(text) - WIDTH + 1, _PIECE):
            piece = text[begin : begin + _PIECE + WIDTH - 1]
            group.append((number, piece))
            size += len(piece)
            if size >= _PIECE:
                yield group
                group, size = [], 0
    if group:
        yield group


def _take(group: Sequence[tuple[int, bytes]], smallest: np.ndarray) -> None:
    """Hash every piece of WIDTH bytes in a group; those that would reach into the next text count for neither."""
    joined = b"".join(piece for _, piece in group)
    windows: np.ndarray = np.ndarray((len(joined) - WIDTH + 1,), np.dtype("<u8"), joined, strides=(1,))
    hashes = windows * _FIRST
    hashes ^= hashes >> np.uint64(32)
    hashes *= _SECOND
    sizes = np.array([len(piece) for _, piece in group])
    slots = np.repeat(np.array([number * SLOTS for number, _ in group]), sizes)[: len(hashes)]
    slots += (hashes >> np.uint64(58)).astype(np.int64)
    values = (hashes >> np.uint64(20)).astype(np.uint32)  # the cast keeps 32 bits; the largest of them means nothing was found
    np.minimum(values, _EMPTY - np.uint32(1), out=values)
    values[(np.cumsum(sizes)[:-1, None] - np.arange(1, WIDTH)).ravel()] = _EMPTY
    np.minimum.at(smallest, slots, values)


def _dense(smallest: np.ndarray) -> np.ndarray:
    """Every slot filled, from the next one to the right that has something; texts without any stay as they are."""
    empty = smallest == _EMPTY
    lacking = np.flatnonzero(empty.any(axis=1) & ~empty.all(axis=1))
    if len(lacking):
        some = np.ascontiguousarray(smallest[lacking].T)  # a slot of all texts lies together: numpy goes along that
        at = np.where(some == _EMPTY, np.int16(3 * SLOTS), _SLOT)
        twice = np.concatenate((at, at + np.int16(SLOTS)))
        nearest = np.minimum.accumulate(twice[::-1], axis=0)[::-1][:SLOTS]
        borrowed = some[nearest % np.int16(SLOTS), np.arange(len(lacking))]
        smallest[lacking] = (borrowed + (nearest - _SLOT).astype(np.uint32) * _BORROWED).T
    return smallest


def _mixed(smallest: np.ndarray) -> np.ndarray:
    """16 bits of each: the smallest of many numbers are all near 0, so their upper bits alone would say little. Never 0."""
    mixed = (smallest * np.uint32(0x9E3779B1)) >> np.uint32(16)
    return np.maximum(mixed, 1).astype(np.uint16)
