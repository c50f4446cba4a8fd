"""Lines on stdout that nobody waits for: a reader that stands still (a stopped terminal, a full pipe) does not stop who writes."""

from __future__ import annotations

import os
import queue
import threading

MOST = 10_000  # lines that are kept for a reader who is late
LAST = 2.0  # seconds at the end for what is left


class Lines:
    """Takes lines from any thread and writes them in order from one of its own. What is too much is left out, and counted."""

    def __init__(self, descriptor: int = 1, most: int = MOST) -> None:
        self._descriptor, self._lines = descriptor, queue.Queue[str | None](most)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="lines", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Write what is left, as far as somebody reads it."""
        try:
            self._lines.put(None, timeout=LAST)
        except queue.Full:
            return
        self._thread.join(LAST)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            lost, self._lost = self._lost, 0
            text = line + "\n" + (f"({lost} lines left out: they were not read in time)\n" if lost else "")
            try:
                self._all(text.encode(errors="replace"))
            except OSError:  # whoever read is gone: there is nobody to tell
                return

    def _all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]
