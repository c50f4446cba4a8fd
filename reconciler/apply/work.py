"""One node's part of an apply, while it goes on: what was done, how it fails, and what ends it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.outcome import End
from reconciler.model.plan import Change, NodePlan, Step
from reconciler.transport.base import Channel


class StepFailed(Exception):
    """A node stops here: `reason` is a code, `data` what people need."""

    def __init__(self, reason: str, /, **data: Any) -> None:
        super().__init__(reason)
        self.reason, self.data = reason, data


class Stop:
    """Set once, by a person or by another controller's token: no further step begins. `end` is how untouched nodes end."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.end = End.INTERRUPTED

    def set(self, end: End) -> None:
        if not self._event.is_set():
            self.end = end
            self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it was set, at most `seconds` from now."""
        return self._event.wait(seconds)


@dataclass
class Work:
    """What one node's worker did so far. `begun`: token and number of steps that the node has a record of.

    `channel` and `token` are others after a reboot.
    """

    name: str
    node: NodePlan
    channel: Channel
    token: int
    begun: list[tuple[int, int]] = field(default_factory=list)
    done: list[Step] = field(default_factory=list)

    def verified(self) -> list[Change]:
        """Resources all of whose steps were carried out and looked at again."""
        numbers = {step.number for step in self.done}
        return [c for c in self.node.writes() if c.steps and set(c.steps) <= numbers]

    def completed_by(self, step: Step) -> tuple[Change, ...]:
        """Resources whose last step this is."""
        return tuple(c for c in self.node.writes() if c.steps and max(c.steps) == step.number)
