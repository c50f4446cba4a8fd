"""What units were not started with: a note, made before a file is replaced, that those which run were started earlier."""

import time
from typing import Any, Dict, List

from reconciler.node import state


def _file() -> str:
    return state.path("restarts.json")


def _now() -> int:
    """Microseconds of CLOCK_MONOTONIC: the clock of systemd's ...TimestampMonotonic, which nobody can set."""
    return int(time.monotonic() * 1000000)


def note(units: List[str], path: str) -> None:
    """From now on each of `units` that began to start before this moment has an older `path`. Notes of earlier boots go."""
    known: Dict[str, Any] = state.read_record(_file()) or {}
    kept = known.get("units", {}) if known.get("boot_id") == state.boot_id() else {}
    at = _now()
    kept.update({name: {"path": path, "at": at} for name in units})
    state.write_record(_file(), {"boot_id": state.boot_id(), "units": kept})
