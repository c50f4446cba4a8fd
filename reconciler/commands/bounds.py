"""How much of a machine one call may take: what a stranger pushes must not end the Git server."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from types import FrameType

from reconciler.errors import SourceError

CPU = 60  # seconds of one process
MEMORY = 1024  # MiB of one process, without what it maps of files
_GRACE = 5  # seconds from the first word to the end


@contextlib.contextmanager
def bounded(cpu: int = CPU, memory: int = MEMORY) -> Iterator[None]:
    """Limits for this process, and each that it starts, until it ends. Raises SourceError(PushTooMuchWork)."""

    def over(number: int, frame: FrameType | None) -> None:
        raise SourceError("PushTooMuchWork", age=float(cpu), memory=memory)

    signal.signal(signal.SIGXCPU, over)
    _limit(resource.RLIMIT_CPU, cpu, cpu + _GRACE)
    _limit(resource.RLIMIT_DATA, memory << 20, memory << 20)
    try:
        yield
    except MemoryError:
        raise SourceError("PushTooMuchWork", age=float(cpu), memory=memory) from None


def _limit(which: int, soft: int, hard: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, most = resource.getrlimit(which)
    top = hard if most == resource.RLIM_INFINITY else min(hard, most)
    resource.setrlimit(which, (min(soft, top), top))
