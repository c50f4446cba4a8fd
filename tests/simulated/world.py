"""The site: manifest, nodes, controllers, clocks; and the points at which faults strike."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.apply.work import Stop
from reconciler.errors import Unreachable
from reconciler.model.outcome import End
from reconciler.node import state
from tests.simulated import rollout, turns
from tests.simulated.acts import CONTROLLERS, FAULTS, NODES
from tests.simulated.links import Link
from tests.simulated.machine import Killed, Machine, PowerLost
from tests.simulated.manifest import Manifest
from tests.simulated.operation import FATES, Operation
from tests.simulated.turns import Choices, Cut

TICK = 0.05  # seconds that a request takes
PIECE = 1.0  # seconds that a piece of a command takes
TTL = 60.0
ENDLESS = 2000  # requests of one apply
LONG = 100.0  # seconds of a controller that sleeps, or a command that hangs: longer than a lease and than a step's deadline


KNOCKS = 5.0  # seconds between two tries to reach a node that restarts


class ControllerKilled(Cut):
    """The controller's process is gone."""


class Patience(Stop):
    """Waits in the world's time, while a node restarts: that too is a place where faults may strike."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def wait(self, seconds: float) -> bool:
        self._world.knocks()
        return bool(self)


class World:
    """`replace(controller)` is what another controller does while one is frozen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock, self.wall = 1000.0, 1_700_000_000.0
        self.manifest = Manifest()
        self.machines = {n: Machine(n, root / n, lambda: self.clock, self.point, started=float(i)) for i, n in enumerate(NODES)}
        self.holders = {name: root / f"controller-{name}" for name in CONTROLLERS}
        for name, folder in self.holders.items():
            folder.mkdir()
            (folder / "holder").write_text(name)
        self.choices = Choices(0)
        self.op = Operation("one")
        self.points = 0
        self.context: tuple[Machine, Link | None] | None = None
        self.violations: list[str] = []
        self.written: list[tuple[str, int, int, str]] = []  # (node, token, step, path): files as steps wrote them
        self.struck: Counter[str] = Counter()
        self.replace: Callable[[str], None] = lambda controller: None

    def wrong(self, what: str) -> None:
        """What must not be; said at the end of the act, since the program under test answers to every exception."""
        self.violations.append(what)

    @contextlib.contextmanager
    def operating(self, op: Operation, choices: Choices) -> Iterator[Operation]:
        """`op` is at work; whatever was at work before stands still."""
        former = self.op, self.points, self.choices
        op.stop, op.planned = Patience(self), lambda plan: self.violations.extend(rollout.holds(self, plan))
        self.op, self.points, self.choices = op, 0, choices
        try:
            yield op
        finally:
            self.struck.update(op.struck)
            former[0].disturbed.update(op.disturbed)
            self.op, self.points, self.choices = former

    @contextlib.contextmanager
    def at_work(self, machine: Machine, link: Link | None) -> Iterator[None]:
        """The node program, or a unit, of one node runs."""
        former = self.context, state.ROOT, state.RUN
        self.context = machine, link
        state.ROOT, state.RUN = str(machine.folder / "lib/reconcile"), str(machine.folder / "run/reconcile")
        try:
            yield
        finally:
            self.context, state.ROOT, state.RUN = former

    @property
    def here(self) -> Machine:
        """The node whose program or unit runs now."""
        assert self.context
        return self.context[0]

    def passes(self, seconds: float) -> None:
        """Time goes on, and the controller at work renews its leases as its thread would."""
        self.clock += seconds
        self.wall += seconds
        for machine in self.machines.values():
            machine.passes()
        op = self.op
        if op.leases and self.clock - op.renewed >= TTL / 3:
            op.renewed = self.clock
            for node, (token, channel) in list(op.leases._held.items()):
                op.leases._renew_one(node, token, channel)

    def goes_on(self, machine: Machine) -> bool:
        """A piece of what runs on a node, and the time that it takes; whether there was one."""
        found = False
        if machine.up:
            with self.at_work(machine, None):
                found = machine.advance()
        self.passes(PIECE)
        return machine.up and found

    def sleeps(self, seconds: float) -> None:
        """Nobody renews anything; nodes go on."""
        until = self.clock + seconds
        for machine in self.machines.values():
            while machine.up and machine.working() and self.clock < until:
                self.clock += PIECE
                with self.at_work(machine, None):
                    machine.advance()
                machine.passes()
        self.wall += seconds
        self.clock = max(self.clock, until)
        for machine in self.machines.values():
            machine.passes()

    def before(self, link: Link, op: str, fields: Mapping[str, Any]) -> None:
        """A request is about to be sent. Raises what ends the controller or the link there."""
        turns.pause()
        self.alive()
        self.passes(TICK)
        self.op.requests += 1
        if self.op.requests == ENDLESS:
            self.wrong(f"an apply does not end: {op} of {link.machine.name} again and again")
            self.op.dead = True
            raise ControllerKilled
        if op == "begin":
            self.violations += rollout.begins(self, link.machine.name, fields["action"])
        elif op == "probe":
            self.point(link.machine, "look", link)
        self.point(link.machine, "send", link)
        if link.machine.working() and self.choices.below(2):
            self.goes_on(link.machine)

    def after(self, link: Link, op: str, fields: Mapping[str, Any]) -> None:
        """A request was carried out, and its answer is on the way."""
        self.alive()
        self.point(link.machine, "answered", link)

    def knocks(self) -> None:
        """A controller waits before it tries again to reach a node that restarts."""
        turns.pause()
        self.alive()
        for machine in self.machines.values():
            self.goes_on(machine)
        self.passes(KNOCKS)
        self.point(next((m for m in self.machines.values() if not m.up), self.machines["a"]), "knock")
        self.alive()

    def alive(self) -> None:
        if self.op.dead:
            raise ControllerKilled

    def disk_point(self, what: str, path: str) -> None:
        """Something is about to be written on the node at work. Raises where its writer is gone, or goes now."""
        assert self.context
        machine, link = self.context
        unit = machine.unit
        if unit is not None and unit.gone:
            raise PowerLost
        if unit is None and link is not None and (link.killed or link.boot != machine.boot):
            raise PowerLost
        self.point(machine, "unit-disk" if unit else "disk", link)
        if what == "rename" and "/lib/reconcile/" not in path and link is not None:
            self._effect(machine, link.asked["token"])
            self.written.append((machine.name, link.asked["token"], link.asked["step"], path))

    def _effect(self, machine: Machine, token: int) -> None:
        """Something changes on a node under this token: it has to be the one of the lease."""
        with self.at_work(machine, None):
            lease = state.read_record(state.path("lease.json")) or {}
        if lease.get("token") != token:
            self.wrong(f"{machine.name}: a write under token {token}, while the lease has {lease.get('token')}")

    def point(self, machine: Machine, where: str, link: Link | None = None) -> str:
        """A place where faults may strike; the fate of a command's piece: "fails", "nothing", "hangs" or ""."""
        if where == "command" and machine.unit:
            self._effect(machine, machine.unit.token)
        self.points += 1
        op = self.op
        for fault in list(op.faults):
            if fault.at <= self.points and where in FAULTS[fault.kind]:
                op.faults.remove(fault)
                op.struck.append(fault.kind)
                return self._strike(fault.kind, machine, link)
        return ""

    def _strike(self, kind: str, machine: Machine, link: Link | None) -> str:
        if kind in FATES:
            return FATES[kind]
        if kind == "gpu-taken":
            machine.gpu.take(taken=True)
            return ""
        if kind in ("power-lost", "node-down"):
            self.op.disturbed.add(machine.name)
            self.cut_power(machine, down=kind == "node-down")
            return ""
        if kind in ("controller-killed", "controller-interrupted", "controller-slept", "replaced-by-another"):
            self._strike_controller(kind)
            return ""
        if kind == "restarted-by-hand":
            self.op.disturbed.add(machine.name)
            machine.restarts()
        elif kind == "changed-by-hand":
            self.op.disturbed.add(machine.name)
            self._by_hand(machine)
        elif kind == "wall-clock-set-back":
            self.wall -= 10 * LONG
        elif kind == "disk-full":
            raise OSError(28, "No space left on device")
        elif kind in ("program-killed", "unit-killed"):
            self._kill(machine, link)
        elif link is not None:
            link.lost = kind != "answer-late"
            raise Unreachable("DeadlinePassed" if kind == "answer-late" else "ConnectionLost")
        return ""

    def _kill(self, machine: Machine, link: Link | None) -> None:
        if machine.unit:
            machine.unit.gone = True
        elif link:
            link.killed = True
        raise Killed

    def cut_power(self, machine: Machine, *, down: bool) -> None:
        """Raises PowerLost in whatever of the node runs now."""
        inside = self.context is not None and self.context[0] is machine
        unit = machine.unit
        with self.at_work(machine, None):
            machine.lose_power(self.choices, down)
        if inside or unit:
            raise PowerLost

    def _strike_controller(self, kind: str) -> None:
        if kind == "controller-killed":
            self.op.dead = True
            raise ControllerKilled
        if kind == "controller-interrupted":
            self.op.stop.set(End.INTERRUPTED)
        else:
            self.sleeps(LONG)
            if kind == "replaced-by-another":
                self.replace(next(name for name in CONTROLLERS if name != self.op.controller))

    def _by_hand(self, machine: Machine) -> None:
        what = self.choices.below(4)
        if what == 0:
            machine.put("/etc/motd", "by hand\n")
        elif what == 1:
            machine.put("/etc/hostname", "evil\n")
        elif what == 2:
            machine.packages["alpha"] = "2-1"
        else:
            machine.packages.pop("alpha", None)
