"""Which valid name a wrong one most likely stands for, and which names lead out of a folder."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

_MANY = 100  # names beyond which only those that begin alike are compared: difflib costs about 10 microseconds a pair
_LONGEST = 128  # characters; a longer word stands for no name


def is_inside(name: str) -> bool:
    """Whether `a/b` names a place inside a folder: relative, and without `.`, `..` or nothing between its slashes."""
    return not {"", ".", ".."} & set(name.split("/"))


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """`proxyJump`, `proxy-jump` and `PROXY_JUMP` compare equal, so that a suggestion survives another convention."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The one name of `allowed` that `word` stands for: alike as typed, or the only one that holds it; else None."""
    want = plain(word) if len(word) <= _LONGEST else ""
    if not want:
        return None
    by_plain = {plain(name): name for name in allowed}
    if len(by_plain) > _MANY:
        by_plain = {p: name for p, name in by_plain.items() if p[:3] == want[:3] and abs(len(p) - len(want)) < 3}
    close = difflib.get_close_matches(want, sorted(by_plain)[:_MANY], n=3, cutoff=0.6)
    if close:  # of those equally near the first by name, whatever the order of `allowed`
        return by_plain[min(close, key=lambda p: (-difflib.SequenceMatcher(None, p, want).ratio(), p))]
    holding = [p for p in by_plain if len(want) > 2 and (want in p or (len(p) > 2 and p in want))]
    return by_plain[holding[0]] if len(holding) == 1 else None
