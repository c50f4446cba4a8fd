"""One simulated node: a folder, a package database, a host name, systemd's units, a boot; and what its commands do."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulated import turns
from tests.simulated.acts import PACKAGES, VERSIONS
from tests.simulated.disk import Disk
from tests.simulated.turns import Choices, Cut, Turn

LOCKS = "etc/dnf/plugins/versionlock.list"
FOREIGN_FILE, FOREIGN_PACKAGE = "/etc/foreign", "omega"  # nothing ever declares them

HANGS = 100.0  # seconds that a command hangs: longer than a lease, and than what a step's deadline and systemd allow


class PowerLost(Cut):
    """The node has no power: whatever ran there is gone."""


class Killed(Cut):
    """One process was killed."""


@dataclass
class Unit:
    """A transient unit. `turn` runs the node program's runner."""

    token: int
    number: int
    turn: Turn
    kill_after: float
    began: float
    ready: bool = False
    commands: int = 0
    gone: bool = False  # killed, or its node lost power: what it still does has no effect

    @property
    def working(self) -> bool:
        return not self.turn.over

    def shown(self) -> str:
        if self.working:
            return "active running" if self.ready else "activating start"
        return "failed failed" if self.failed() else "active exited"

    def failed(self) -> bool:
        return self.turn.error is not None or self.turn.value != 0


@dataclass
class Machine:
    """`clock` is the boot time that never jumps back; `point` is called wherever a fault may strike in a command."""

    name: str
    folder: Path
    clock: Callable[[], float]
    point: Callable[[Machine, str], str]
    boot: int = 1
    up: bool = True
    started: float = 0.0
    packages: dict[str, str] = field(default_factory=lambda: {"rpm": "4.16-39", FOREIGN_PACKAGE: "1-1"})
    units: dict[str, Unit] = field(default_factory=dict)
    ran: list[tuple[int, int, int, str]] = field(default_factory=list)  # (token, step, command, what): what systemd's units did
    unit: Unit | None = None  # the one at work now

    def __post_init__(self) -> None:
        for directory in ("etc/dnf/plugins", "proc/sys/kernel", "run", "lib"):
            (self.folder / directory).mkdir(parents=True)
        self.disk = Disk(str(self.folder), str(self.folder / "run"))
        self.put("/etc/os-release", 'ID="centos"\nNAME="CentOS Stream"\nVERSION_ID="9"\n')
        self.put("/etc/dnf/plugins/versionlock.conf", "[main]\nenabled=1\n")
        self.put(FOREIGN_FILE, "theirs\n")
        for file in ("/etc/hostname", "/proc/sys/kernel/hostname"):
            self.put(file, "localhost\n")

    def place(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def put(self, path: str, text: str | None) -> None:
        """As somebody else would: it lasts at once."""
        place = self.place(path)
        if text is None:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def text(self, path: str) -> str | None:
        place = self.place(path)
        return place.read_text() if place.is_file() else None

    @property
    def boot_id(self) -> str:
        return f"{self.name}-boot-{self.boot}"

    def boottime(self) -> float:
        return self.clock() - self.started

    def lose_power(self, choices: Choices, down: bool) -> None:
        """And boot again at once where it does not stay down."""
        self.boot, self.started, self.up = self.boot + 1, self.clock(), not down
        current, self.unit = self.unit, None
        for unit in self.units.values():
            unit.gone = True
            if unit.working and unit is not current:
                unit.turn.cut(PowerLost())
        self.units = {}
        self.disk.lose_power(choices)
        self.put("/proc/sys/kernel/hostname", self.text("/etc/hostname") or "localhost\n")

    def working(self) -> list[Unit]:
        return [unit for unit in self.units.values() if unit.working]

    def advance(self) -> bool:
        """One unit that is at work goes on to its next pause; whether there was one."""
        for unit in self.working():
            if unit.kill_after and self.clock() - unit.began > unit.kill_after:
                unit.turn.cut(Killed())
            else:
                self._resume(unit)
            return True
        return False

    def _resume(self, unit: Unit) -> None:
        before, self.unit = self.unit, unit
        try:
            unit.turn.resume()
        finally:
            self.unit = before

    def systemd_run(self, argv: list[str], runner: Callable[[int, int], int]) -> int:
        """Its exit status: 0 once the command said that it is ready."""
        options = dict(a.partition("=")[::2] for a in argv if "=" in a)
        token, number = int(argv[-2]), int(argv[-1])
        kill_after = next((float(a.rpartition("=")[2]) for a in argv if "RuntimeMaxSec" in a), 0.0)
        name = options["--unit"]
        if name in self.units:
            return 1
        unit = self.units[name] = Unit(token, number, Turn(lambda: runner(token, number)), kill_after, self.clock())
        while unit.working and not unit.ready:
            self._resume(unit)
        return 0 if unit.ready else 1

    def ready(self) -> None:
        """sd_notify of the unit that is at work."""
        assert self.unit
        self.unit.ready = True
        turns.pause()

    def systemctl(self, argv: tuple[str, ...]) -> tuple[int, str]:
        """Exit status and output."""
        if argv[0] == "list-units":
            return 0, "".join(f"{name} loaded {unit.shown()} step\n" for name, unit in self.units.items())
        unit = self.units.get(argv[1])
        if argv[0] == "is-failed":
            failed = unit is not None and not unit.working and unit.failed()
            return (0, "failed\n") if failed else (1, "inactive\n")
        assert unit is None or not unit.working, "a step at work is never stopped"
        if unit and (argv[0] == "reset-failed" or not unit.failed()):
            del self.units[argv[1]]
        return 0, ""

    def command(self, argv: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
        """A command of the unit that is at work: it may be cut at any point, and fail or do nothing where a fault says so."""
        assert self.unit
        unit = self.unit
        self.ran.append((unit.token, unit.number, unit.commands, " ".join(argv)))
        unit.commands += 1
        turns.pause()
        for act in self._acts(argv, given):
            fate = self.point(self, "command")
            if fate == "fails":
                return subprocess.CompletedProcess(argv, 4, b"", b"it is broken")
            until = self.clock() + (HANGS if fate == "hangs" else 0.0)
            while self.clock() < until:
                turns.pause()
            if fate != "nothing":
                act()
            turns.pause()
        return subprocess.CompletedProcess(argv, 0, b"", b"")

    def _acts(self, argv: list[str], given: bytes) -> Iterator[Callable[[], None]]:
        """What a command does, piece by piece: neither hostnamectl nor a package transaction is atomic."""
        if argv[0] == "hostnamectl":
            for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
                yield partial(self._name, path, argv[-1])
            return
        lines = [line.split() for line in given.decode().splitlines()] if argv[-1] == "shell" else [_verb(argv)]
        for verb, *names in lines:
            for name in names:
                yield partial(self._package, verb, name)

    def _name(self, path: str, name: str) -> None:
        if path.startswith("/etc"):  # written without an fsync, as far as we may rely on
            self.disk.remember(str(self.place(path)))
        self.put(path, f"{name}\n")

    def _package(self, verb: str, what: str) -> None:
        if verb == "install":
            found = re.fullmatch(r"(.+)-([^-]+-[^-]+)", what)
            assert found
            self.packages[found[1]] = found[2]
        elif verb == "remove":
            self.packages.pop(what, None)

    def answer(self, argv: list[str]) -> dict[str, Any]:
        """A command that only looks."""
        out = ""
        if argv[:2] == ["rpm", "-qa"]:
            out = "".join(_row(name, version) for name, version in self.packages.items())
        elif argv[0] == "dnf":
            asked = argv[argv.index("--") + 1 :]
            out = "".join(_row(name, version) for name in asked if name in PACKAGES for version in VERSIONS)
        return {"out": out.encode(), "err": b"", "status": 0, "error": "", "ms": 0.0, "cpu": 0.0}


def _row(name: str, version: str) -> str:
    number, release = version.split("-")
    return f"{name}\t0\t{number}\t{release}\tx86_64\n"


def _verb(argv: list[str]) -> list[str]:
    at = next(i for i, word in enumerate(argv) if word in ("install", "remove"))
    return argv[at:]
