"""When to try again: longer each time, never all at once. Reset only by success or by a new revision."""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LONGEST = 5.0, 300.0  # seconds: a node that restarts is back in minutes, one that is down stays so for longer
SPREAD = 0.2  # a fifth of each pause is chance, so that many controllers do not knock in step


@dataclass(frozen=True, slots=True)
class Retry:
    """`failures` in a row."""

    failures: int = 0

    def failed(self) -> Retry:
        return Retry(self.failures + 1)

    def pause(self, chance: float) -> float:
        """Seconds until the next try after `failures` of them; `chance` in [0, 1)."""
        whole = min(LONGEST, FIRST * 2.0 ** min(self.failures - 1, 30)) if self.failures else 0.0
        return spread(whole, chance)


def spread(seconds: float, chance: float) -> float:
    """An interval shortened by up to a fifth."""
    return seconds * (1.0 - SPREAD * chance)
