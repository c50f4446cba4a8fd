"""A small cluster over a `Site`: what is declared, one apply of it, and what the journal says then.

As a program (`python -m tests.nodes.cluster SITE STATE NODE ...`) it is one apply, for tests that kill it.
"""

from __future__ import annotations

import grp
import os
import pwd
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.apply import journal
from reconciler.apply.statedir import StateDir
from reconciler.apply.work import Stop
from reconciler.engine import Applied, Engine
from reconciler.events import Event
from reconciler.model.desired import (
    DesiredNode,
    DesiredState,
    FileSpec,
    HostnameSpec,
    Origin,
    Resource,
    ResourceId,
    Revision,
    Rollout,
    SshAccess,
)
from reconciler.model.observed import Known
from reconciler.model.plan import Plan, Selection
from reconciler.transport import program
from tests.nodes.site import Site, moved_program

AT = Origin("site.yaml", 3, 5)
USER, GROUP = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name


def file(path: str, text: str) -> Resource:
    return Resource(ResourceId("File", path), FileSpec(path, text.encode(), USER, GROUP), AT)


def desired(names: Iterable[str], files: Mapping[str, str], *, hostname: bool = True, **rollout: Any) -> DesiredState:
    """Each node is to have its name (a step in a unit) and the files (steps that are carried out at once)."""
    nodes = {}
    for name in names:
        named = [Resource(ResourceId("Hostname", name), HostnameSpec(name), AT)] if hostname else []
        nodes[name] = DesiredNode(name, SshAccess(name), (*named, *(file(p, t) for p, t in files.items())))
    return DesiredState("lab", Revision("c" * 40), "d" * 64, nodes, Rollout(**{"max_unavailable": "4", **rollout}))


@dataclass
class Controller:
    """One state directory and its applies."""

    site: Site
    state: StateDir
    events: list[Event] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)

    def apply(
        self, wanted: DesiredState, saved: Mapping[str, Any] | None = None, *, ttl: float = 60.0, on: Iterable[str] = ()
    ) -> Applied:
        """One apply, with channels of its own."""
        opened = journal.Journal(self.state.journal)
        pool = self.site.pool(wanted)
        try:
            engine = Engine(wanted, pool, Selection(tuple(on)), self.events.append)
            return engine.apply(opened, self.state.holder(), saved, self.stop, ttl)
        finally:
            pool.close()
            self.site.close()
            opened.close()

    def plan(self, wanted: DesiredState) -> Plan:
        pool = self.site.pool(wanted)
        try:
            return Engine(wanted, pool, Selection(), self.events.append).plan(Known())
        finally:
            pool.close()
            self.site.close()

    def records(self, kind: str = "") -> list[journal.Record]:
        return [r for r in journal.read(self.state.journal) if kind in ("", r["type"])]

    def shown(self, *kinds: str) -> list[str]:
        """Events of some kinds, as KIND NODE."""
        return [f"{e.kind} {e.node}".strip() for e in self.events if e.kind in kinds]


def controller(site: Site, at: Path) -> Controller:
    at.mkdir(parents=True, exist_ok=True)
    return Controller(site, StateDir(at))


FILES = {"/etc/motd": "hi\n"}

if __name__ == "__main__":
    sent = moved_program()
    program.packed = lambda: sent
    root, state_dir, *nodes = sys.argv[1:]
    sys.exit(controller(Site(Path(root)), Path(state_dir)).apply(desired(nodes, FILES)).exit)
