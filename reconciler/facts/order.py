"""The order of rpm versions: rpmvercmp, as rpm's own documentation and tests define it."""

from __future__ import annotations

import re
from itertools import zip_longest

_TOKEN = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")


def compare(one: str, two: str) -> int:
    """Below 0, 0 or above 0, as `one` is older than, as old as, or newer than `two`. What is no letter or digit only separates."""
    for left, right in zip_longest(_TOKEN.findall(one), _TOKEN.findall(two), fillvalue=""):
        if found := _token(left, right):
            return found
    return 0


def _token(left: str, right: str) -> int:
    if left == right:
        return 0
    if "~" in (left, right):  # older than anything, even the end
        return -1 if left == "~" else 1
    if "^" in (left, right):  # newer than the end, older than anything else
        return (1 if left == "^" else -1) if "" in (left, right) else (-1 if left == "^" else 1)
    if not (left and right):
        return 1 if left else -1
    if left.isdigit() != right.isdigit():
        return 1 if left.isdigit() else -1
    if left.isdigit():
        first, second = _number(left), _number(right)
        return (first > second) - (first < second)
    return (left > right) - (left < right)


def _number(digits: str) -> tuple[int, str]:
    """Comparable without making a number of it: one of ten thousand digits is refused by int()."""
    bare = digits.lstrip("0")
    return len(bare), bare
