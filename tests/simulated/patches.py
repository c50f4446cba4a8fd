"""What of the product is led to the simulated world: its clocks, processes, threads, and the node program's disk."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace, TracebackType
from typing import Any
from unittest import mock

from reconciler import engine, pool
from reconciler.apply import adopt, executor, journal, reboot
from reconciler.apply.lease import Leases
from reconciler.kinds import gpu_driver
from reconciler.node import files, fragments, main, probe, runner, state, steps, units
from reconciler.transport import program
from tests.simulated import turns
from tests.simulated.disk import SimulatedOs
from tests.simulated.world import PIECE, ControllerKilled, World

RESTART_DEADLINE, REBOOT_PATIENCE = 120.0, 60.0  # seconds; half an hour and a quarter of it in the product


class Time:
    """Stands in for the module `time` in the executor, in adoption and in the node program's waits."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic(self) -> float:
        return self._world.clock

    def time(self) -> float:
        return self._world.wall

    def sleep(self, seconds: float) -> None:
        turns.pause()
        for machine in self._world.machines.values():
            self._world.goes_on(machine)
        self._world.passes(max(seconds, PIECE))


class JournalOs:
    """Stands in for `os` in the journal: the controller may die at every write, also in the middle of a line."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _point(self, where: str) -> None:
        self._world.point(next(iter(self._world.machines.values())), where)

    def write(self, fd: int, data: bytes) -> int:
        self._world.alive()
        self._point("journal-before")
        try:
            self._point("journal-torn")
        except ControllerKilled:
            os.write(fd, data[: len(data) // 2])
            raise
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        self._point("journal-after")


def _processes(world: World) -> SimpleNamespace:
    """Stands in for `subprocess` in what starts and asks units."""

    def run(argv: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[bytes]:
        if argv[0] == "systemctl":
            status, out = world.here.systemctl(argv[1:])
        else:
            status, out = world.here.systemd_run(list(argv), runner.main), ""
        return subprocess.CompletedProcess(argv, status, out.encode(), b"")

    kept = {name: getattr(subprocess, name) for name in ("PIPE", "STDOUT", "DEVNULL", "TimeoutExpired")}
    return SimpleNamespace(run=run, **kept)


def _commands(world: World) -> SimpleNamespace:
    """Stands in for `subprocess` in the runner of a step."""

    def run(argv: list[str], *, input: bytes, **_: Any) -> subprocess.CompletedProcess[bytes]:
        return world.here.command(argv, input)

    return SimpleNamespace(run=run, PIPE=subprocess.PIPE)


def _leases(world: World) -> type[Leases]:
    class SteppedLeases(Leases):
        """Renewed by the world as its time passes, by the product's own function; the thread that waits is left out."""

        def __enter__(self) -> Leases:
            world.op.leases, world.op.renewed = self, world.clock
            return self

        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
            world.op.leases = None

    return SteppedLeases


def _send(world: World, message: dict[str, Any]) -> None:
    assert world.context
    assert world.context[1]
    world.context[1].answers[message["id"]] = message


def _looks(world: World, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Commands and fragments: those that share a process too answer with one JSON value."""
    return [_value(job["function"]()) if "function" in job else world.here.answer(job["argv"]) for job in jobs]


def _value(found: Any) -> dict[str, Any]:
    return {"out": json.dumps(found).encode(), "err": b"", "status": 0, "error": "", "ms": 0.0, "cpu": 0.0}


@contextlib.contextmanager
def installed(world: World) -> Iterator[None]:
    """The product runs in `world`."""
    disk = SimulatedOs(lambda: world.here.disk, world.disk_point)
    time = Time(world)
    with contextlib.ExitStack() as stack:
        for module in (state, steps, files, runner):
            stack.enter_context(mock.patch.object(module, "os", disk))
        for other in (steps, executor, adopt, journal, reboot):
            stack.enter_context(mock.patch.object(other, "time", time))
        for owner, name, value in (
            (state, "boot_id", lambda: world.here.boot_id),
            (state, "boottime", lambda: world.here.boottime()),  # noqa: PLW0108  (whoever is here then)
            (units, "subprocess", _processes(world)),
            (runner, "subprocess", _commands(world)),
            (runner, "_ready", lambda: world.here.ready()),  # noqa: PLW0108
            (probe, "run_all", lambda jobs: _looks(world, jobs)),
            (main, "_send", lambda message: _send(world, message)),
            (pool, "ThreadPoolExecutor", turns.Workers),
            (pool, "wait", lambda futures: turns.wait_for(futures, world.choices)),
            (engine, "Leases", _leases(world)),
            (journal, "os", JournalOs(world)),
            (journal, "fsync_directory", lambda path: None),
            (fragments, "take", lambda sources: None),
            (fragments, "look", lambda name, arguments: world.here.gpu.answer(name)),
            (program, "fragment", lambda name: ""),
            *((module, "RESTART_DEADLINE", RESTART_DEADLINE) for module in (gpu_driver, adopt)),
            (steps, "REBOOT_PATIENCE", REBOOT_PATIENCE),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield
