"""Every fact that a running node is asked for, by name: the one list, by hand."""

from __future__ import annotations

from reconciler.facts import boot, kernel_events
from reconciler.facts.live import LiveFact

LIVE: tuple[LiveFact, ...] = (
    boot.FACT,
    kernel_events.FACT,
)

BY_NAME = {fact.name: fact for fact in LIVE}
