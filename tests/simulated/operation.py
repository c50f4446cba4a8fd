"""One apply or plan at work in the world, and what becomes of what a fault meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from reconciler.apply.lease import Leases
from reconciler.apply.work import Stop
from reconciler.events import Event
from reconciler.model.plan import Plan
from tests.simulated.acts import Fault

# what becomes of what a node was about to do
FATES = {
    "command-fails": "fails",
    "command-does-nothing": "nothing",
    "command-hangs": "hangs",
    "module-not-built": "unbuilt",
    "module-refused": "refused",
    "stays-away": "away",
}


@dataclass
class Operation:
    """One apply or plan at work: what strikes it, and what was seen of it."""

    controller: str
    faults: list[Fault] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)
    dead: bool = False
    requests: int = 0
    struck: list[str] = field(default_factory=list)
    disturbed: set[str] = field(default_factory=set)  # nodes on which something changed behind the apply's back
    plan: Plan | None = None
    begun: list[str] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    leases: Leases | None = None
    renewed: float = 0.0
    planned: Callable[[Plan], None] = lambda plan: None

    def watch(self, event: Event) -> None:
        if event.kind == "planned":
            self.plan = event.data["plan"]
            self.planned(self.plan)
        elif event.kind == "node-finished":
            self.finished[event.node] = event.data["end"]
