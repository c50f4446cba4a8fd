"""Looking at the repository every interval, and at once when somebody says that it moved. Polling is the truth."""

from __future__ import annotations

import threading

from reconciler.controller.loop import Loop
from reconciler.controller.retry import Retry, spread


class Watch:
    """A thread. What it cannot go on after it keeps as `error` and ends the loop."""

    def __init__(self, loop: Loop, interval: float) -> None:
        self._loop, self._interval = loop, interval
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        retry = Retry()
        while not self._loop.ended:
            try:
                followed = self._loop.look()
            except Exception as e:  # noqa: BLE001 whatever it is: the main thread raises it, and says what it is
                self.error = e
                self._loop.end()
                return
            # a server that is down is not asked more often than the interval says, and less often the longer it is down
            down = self._loop.follower.repository.remote and followed.refused and followed.transient
            retry = retry.failed() if down else Retry()
            chance = self._loop.chance()
            self._loop.poked.wait(max(spread(self._interval, chance), retry.pause(chance)))
            self._loop.poked.clear()
