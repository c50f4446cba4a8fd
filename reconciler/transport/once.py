"""What is made once a process, though the workers of a pool ask for it all at the same moment."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(make: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` behind a lock: without one, each of the workers makes it anew until the first has it."""
    lock, cached = threading.Lock(), functools.cache(make)

    @functools.wraps(make)
    def only(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # whether they can be hashed is the caller's affair

    return only
