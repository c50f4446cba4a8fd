"""Ending a run early without losing a step: by a file, SIGUSR1 or SIGTERM; all ranks stop after the same step and save it."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGUSR1, signal.SIGTERM)  # torchrun hands SIGTERM on to every rank


class Stop:
    """What this rank was told. `asked` is the reason, empty while nobody asked."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._signal = ""

    def listen(self) -> None:
        """Take the signals over; they are only remembered, so a step is never cut."""
        for number in SIGNALS:
            signal.signal(number, self._remember)

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self._signal = signal.Signals(number).name

    @property
    def asked(self) -> str:
        if self._signal:
            return self._signal
        return f"the file {self.file.name}" if self.file.exists() else ""

    def done(self) -> None:
        """Take the file away, so that the next start is not stopped by it."""
        self.file.unlink(missing_ok=True)
