"""Notes that the node program keeps below /var/lib/reconcile: JSON with a version, written by it alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from reconciler.model.fact import Absent, Fact, Unknown, Value

VERSION = 1
K = TypeVar("K")


def read(text: Fact[str], understand: Callable[[Any], dict[str, K]]) -> Fact[dict[str, K]]:
    """What `understand` makes of the JSON: empty where nothing was noted, Unknown(NotesUnreadable) for what we did not write."""
    if isinstance(text, Absent):
        return Value({})
    if not isinstance(text, Value):
        return text
    try:
        found = json.loads(text.value)
        if found["version"] > VERSION:
            return Unknown("NotesUnreadable", f"version {found['version']}"[:80])
        return Value(understand(found))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        return Unknown("NotesUnreadable", type(e).__name__)
