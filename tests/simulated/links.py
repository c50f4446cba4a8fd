"""The link to a simulated node: the real node program's `handle` behind the controller's protocol, in this process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconciler.errors import NodeRefused, Unreachable
from reconciler.model.desired import DesiredNode
from reconciler.node import main
from reconciler.transport.base import Channel, Hello, parse_answer
from tests.nodes.site import Rooted
from tests.simulated.machine import Machine
from tests.simulated.turns import Cut

if TYPE_CHECKING:
    from tests.simulated.world import World

SOURCE = zlib.compress(b"the program that units would run")
LONGEST = 500  # rounds of one wait: more is a wait that does not end


class Link:
    """One connection: it ends with the node's boot, with its program, and with whoever opened it."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world, self.machine = world, machine
        self.boot = machine.boot
        self.hello = Hello(machine.boot_id, machine.name, "3.9", 0)
        self.received = 0
        self.program = main.Program(SOURCE)
        self.answers: dict[int, dict[str, Any]] = {}
        self.lost = self.killed = False
        self.asked: Mapping[str, Any] = {}
        self._number = 0

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        self.world.before(self, op, fields)
        self._check()
        self._number += 1
        number = self._number
        self._carry_out(number, op, fields)
        self._wait(number)
        self.world.after(self, op, fields)
        self._check()
        message = parse_answer(json.dumps(self.answers.pop(number)).encode())
        if "refused" in message:
            raise NodeRefused(
                message["refused"], **{k: v for k, v in message.get("data", {}).items() if k not in ("self", "reason")}
            )
        return dict(message["ok"])

    def _check(self) -> None:
        if self.lost or self.boot != self.machine.boot or not self.machine.up:
            self.lost = True
            raise Unreachable("ConnectionLost")

    def _carry_out(self, number: int, op: str, fields: Mapping[str, Any]) -> None:
        line = json.dumps({"id": number, "op": op, **fields}).encode()
        before, self.asked = self.asked, {"op": op, **fields}
        try:
            with self.world.at_work(self.machine, self):
                self.program.handle(line)
            if op == "settle" and "ok" in self.answers.get(number, {}):
                self.machine.gpu.looked_at()
        except Cut:
            self.lost = True
        finally:
            self.asked = before

    def _wait(self, number: int) -> None:
        """As the program's loop: units go on, time passes, and whoever waits is looked at again."""
        for _ in range(LONGEST):
            self._check()
            if number in self.answers:
                return
            self.world.goes_on(self.machine)
            self._check()
            try:
                with self.world.at_work(self.machine, self):
                    self.program.look_at(list(self.program.waiters))
            except Cut:
                self.lost = True
        self.world.wrong(f"a wait on {self.machine.name} does not end")
        raise Unreachable("DeadlinePassed")

    def close(self) -> None:
        self.lost = True
        for waiter in self.program.waiters:
            waiter.close()


class Links:
    """A transport to the world's nodes."""

    def __init__(self, world: World) -> None:
        self._world = world

    def open(self, node: DesiredNode, deadline: float) -> Channel:
        self._world.alive()
        machine = self._world.machines[node.name]
        if not machine.up:
            raise Unreachable("ConnectTimedOut", host=node.name, port=22)
        return Rooted(Link(self._world, machine), node.name, machine.folder, None)

    def close(self) -> None:
        """Nothing is shared between links."""
