"""One thread that ends what blocks for too long: a write into a full window, a login that never answers."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _nothing() -> None:
    """What a disarmed alarm does."""


class Alarm:
    """One deadline. `fired`: its time came before its block was left."""

    __slots__ = ("_act", "_armed", "_lock", "fired")

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._armed = True
        self.fired = False

    def disarm(self) -> None:
        with self._lock:
            self._armed = False
            self._act = _nothing  # it may stay in the queue for a while: not with all that it would have ended

    @property
    def armed(self) -> bool:
        return self._armed

    def fire(self) -> None:
        with self._lock:
            if not self._armed:
                return
            self._armed, self.fired = False, True
        self._act()


class Watchdog:
    """Deadlines of many threads on one thread, which runs from the first deadline until `close`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def after(self, seconds: float, act: Callable[[], None]) -> Iterator[Alarm]:
        """Call `act` (which must neither block nor raise) unless the block is left within `seconds`."""
        alarm = Alarm(act)
        entry = (time.monotonic() + max(0.0, seconds), next(self._order), alarm)
        with self._changed:
            self._forget()
            heapq.heappush(self._alarms, entry)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="reconcile-watchdog", daemon=True)
                self._thread.start()
            elif self._alarms[0] is entry:
                self._changed.notify()
        try:
            yield alarm
        finally:
            alarm.disarm()

    def _run(self) -> None:
        while (alarm := self._next()) is not None:
            alarm.fire()

    def _next(self) -> Alarm | None:
        """Wait for the next deadline that passes; None when the watchdog was closed."""
        with self._changed:
            while not self._closed:
                self._forget()
                wait = self._alarms[0][0] - time.monotonic() if self._alarms else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._alarms)[2]
                self._changed.wait(wait)
        return None

    def _forget(self) -> None:
        while self._alarms and not self._alarms[0][2].armed:
            heapq.heappop(self._alarms)

    def close(self) -> None:
        """End the thread. Deadlines that are still open never fire any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()
