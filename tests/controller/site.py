"""A whole controller in this process: a real repository, real node programs, its real socket."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.apply.statedir import StateDir
from reconciler.controller import protocol
from reconciler.controller.conditions import Status
from reconciler.controller.process import Process, Shown, controller
from reconciler.controller.settings import Settings
from reconciler.events import Event
from reconciler.model.plan import Plan
from reconciler.render import data
from tests.nodes.cluster import GROUP, USER
from tests.nodes.site import Site

LONG = 30.0  # seconds: what is not so by then never will be


def shown(event: Event) -> dict[str, Any]:
    plan = event.data.get("plan")
    return data.event(Event(event.kind, event.node, data.plan(plan, ""), event.time) if isinstance(plan, Plan) else event)


def manifest(**more: Any) -> str:
    """Two nodes with one file each. `spec`: further lines of the spec; `nodes`: their names."""
    nodes = more.get("nodes", ("gpu01", "gpu02"))
    listed = "".join(f"    {name}: {{address: 10.0.0.{i}}}\n" for i, name in enumerate(nodes, start=1))
    return f"""apiVersion: reconcile/v1
kind: Cluster
metadata: {{name: lab}}
spec:
  ssh: {{user: root}}
  files: {{/etc/motd: {{source: motd, owner: {USER}, group: {GROUP}}}}}
  hosts: null
  rollout: {{maxUnavailable: 2{more.get("rollout", "")}}}
{more.get("spec", "")}  nodes:
{listed}"""


@dataclass
class World:
    """`repo`: a work tree whose main branch the controller follows, bare or not; `state`: its records."""

    site: Site
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    said: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def state(self) -> StateDir:
        return StateDir(self.folder / "controller")

    @property
    def socket(self) -> Path:
        return self.state.root / protocol.SOCKET

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
        argv = ("git", *identity, "-C", str(self.repo), *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: Mapping[str, str], *, amend: bool = False) -> str:
        """Write files and commit; the commit's id."""
        if not (self.repo / ".git").exists():
            self.repo.mkdir(parents=True, exist_ok=True)
            self.git("init", "--quiet", "--initial-branch=main")
        for name, text in files.items():
            (self.repo / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change", *(["--amend"] if amend else []))
        return self.git("rev-parse", "HEAD")

    def named(self, *names: str) -> None:
        """Nodes that have their host name already: only files differ."""
        for name in names:
            (self.site.node(name) / "etc/hostname").write_text(f"{name}\n")
            (self.site.node(name) / "proc/sys/kernel/hostname").write_text(f"{name}\n")

    @contextmanager
    def running(self, **settings: Any) -> Iterator[Process]:
        """The controller at work in a thread of its own."""
        chosen = Settings(**{"repository": str(self.repo), "interval": 0.2, "drift_interval": 600.0, **self.settings, **settings})
        with controller(chosen, self.state, self.site, Shown(shown, data.plan), self.said.append) as process:
            failed: list[BaseException] = []

            def work() -> None:
                try:
                    process()
                except BaseException as e:  # noqa: BLE001 told below
                    failed.append(e)

            thread = threading.Thread(target=work)
            thread.start()
            try:
                yield process
            finally:
                process.loop.end()
                thread.join(LONG)
                assert not thread.is_alive()
            for error in failed:
                raise error

    def ask(self, op: str, **fields: Any) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
        """The events and the end of one request."""
        *events, ended = protocol.ask(self.socket, {"op": op, **fields})
        return [e["event"] for e in events], ended["end"]

    def wait(self, condition: str, *nodes: str) -> None:
        """Until a condition holds."""
        _, ended = self.ask("wait", condition=condition, nodes=list(nodes), timeout=LONG)
        assert ended["exit"] == 0, ended

    def motd(self, name: str) -> str:
        return (self.site.node(name) / "etc/motd").read_text()

    def condition(self, process: Process, subject: str, type_: str) -> tuple[Status, str]:
        found = process.loop.board.subjects()[subject].conditions[type_]
        return found.status, found.reason

    def records(self, kind: str) -> list[Mapping[str, Any]]:
        from reconciler.apply import journal

        return [r for r in journal.read(self.state.journal) if r["type"] == kind]


def until(done: Callable[[], bool], what: str = "it") -> None:
    """Wait for something that a thread of this process brings about."""
    limit = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < limit, f"{what} never came"
        time.sleep(0.01)


def turn(process: Process) -> None:
    """One turn more, to its end."""
    loop = process.loop
    until(lambda: bool(loop.running) and loop.running[-1].exit is not None, "the end of the turn before")
    before = loop.running[-1]
    loop.wake("interval")
    until(lambda: loop.running[-1] is not before and loop.running[-1].exit is not None, "the turn")
