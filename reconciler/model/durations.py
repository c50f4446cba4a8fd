"""Spans of time as people write them: 90s, 36h, 1d12h."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WHOLE = re.compile(r"(?:[0-9]{1,6}(?:ms|[smhdw]))+")
_PART = re.compile(r"([0-9]{1,6})(ms|[smhdw])")
ALLOWED = "a number with a unit, such as 90s, 36h or 1d12h (ms, s, m, h, d, w)"


def seconds(text: str) -> float | None:
    """The span in seconds; None for what is none."""
    if not _WHOLE.fullmatch(text):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
