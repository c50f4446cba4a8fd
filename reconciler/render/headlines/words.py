"""Pieces of headlines: a field's value, or that it is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from reconciler.model.seen import is_absent, is_unknown
from reconciler.render.text import safe


def word(value: Any, limit: int = 60) -> str:
    """A field as a word: `?` where it is unknown, `none` where it is absent; the reasons stand in the whole fact."""
    if is_unknown(value):
        return "?"
    return "none" if is_absent(value) else safe(value, limit)


def there(value: Any) -> bool:
    """Whether a field has a value."""
    return not is_absent(value) and not is_unknown(value)


def some(names: Iterable[Any], most: int = 4) -> str:
    """`a, b, c, d and 3 more`."""
    found = [word(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def counted(values: Iterable[Any]) -> str:
    """`8 x A100 80GB PCIe`, `2 x 4.0, 1 x ?`: equal values together, the most frequent first."""
    found = Counter(word(value) for value in values)
    return ", ".join(f"{n} x {value}" for value, n in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))) or "none"
