"""What happens in the controller, for everyone who listens: numbered messages, the last ones kept."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.events import Event

KEPT = 4000  # messages: several whole applies of a large cluster
Message = Mapping[str, Any]


class Hub:
    """`as_data` makes JSON of an event; `listen` hears each message, in their order.

    Each message has its number (`seq`), and the turn that it belongs to.
    """

    def __init__(self, as_data: Callable[[Event], dict[str, Any]], listen: Callable[[Message], None] | None = None) -> None:
        self._as_data, self._listen = as_data, listen
        self._kept: deque[Message] = deque(maxlen=KEPT)
        self._moved = threading.Condition()
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the newest message."""
        with self._moved:
            return self._last

    def publish(self, event: Event, turn: str = "") -> None:
        data = self._as_data(event)
        with self._moved:
            self._last += 1
            message = {"seq": self._last, **({"turn": turn} if turn else {}), **data}
            self._kept.append(message)
            self._moved.notify_all()
            if self._listen:
                self._listen(message)

    def after(self, number: int) -> list[Message]:
        """The messages that are kept and newer than `number`."""
        with self._moved:
            return [m for m in self._kept if m["seq"] > number]

    def wait(self, number: int, seconds: float) -> None:
        """Until there is a newer message, at most so long."""
        until = time.monotonic() + seconds
        with self._moved:
            while self._last <= number and (left := until - time.monotonic()) > 0:
                self._moved.wait(left)
