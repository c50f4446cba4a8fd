"""What happens while a command works, as values: progress for people and `--json` lines are both made from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """`kind` is a code: observed, adopting, wave-started, step-started, step-finished, node-finished; `time` in Unix seconds."""

    kind: str
    node: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0


Emit = Callable[[Event], None]


def now(kind: str, node: str = "", **data: Any) -> Event:
    return Event(kind, node, data, round(time.time(), 3))
