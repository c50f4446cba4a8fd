"""How a process of the trainer ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End this process with an exit status, once what is registered for its exit has run; Python is not taken down first.

    A thread of gloo lives as long as anything holds its group (destroy_process_group only forgets it) and may be the last that
    holds a tensor. Where it lets go of it while Python is being taken down, the process ends by SIGABRT: a run that succeeded would
    count as failed (PyTorch issues 38228 and 190489).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads any more
            stream.flush()
    os._exit(status)
