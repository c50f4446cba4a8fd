"""One simulated node: a folder, a package database, a host name, systemd's units, a boot; and what its commands do."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulated import dnf, gpu, turns
from tests.simulated.disk import Disk
from tests.simulated.gpu import Gpu
from tests.simulated.turns import Choices, Cut, Turn

LOCKS = "etc/dnf/plugins/versionlock.list"
FOREIGN_FILE, FOREIGN_PACKAGE = "/etc/foreign", "omega"  # nothing ever declares them

GOES_DOWN, AWAY, VERY_LONG = (
    3.0,
    20.0,
    400.0,
)  # seconds from the command to the shutdown; until it is back; too long
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
    gpu: Gpu = field(default_factory=Gpu)
    down_at: float | None = None  # when it goes down, having been told to restart
    back_at: float | None = None  # when it is back from that

    def __post_init__(self) -> None:
        for directory in ("etc/dnf/plugins", "proc/sys/kernel", "run", "lib"):
            (self.folder / directory).mkdir(parents=True)
        self.disk = Disk(str(self.folder), str(self.folder / "run"))
        self.put("/etc/os-release", 'ID="centos"\nNAME="CentOS Stream"\nVERSION_ID="9"\n')
        self.put("/etc/dnf/plugins/versionlock.conf", "[main]\nenabled=1\n")
        self.put(FOREIGN_FILE, "theirs\n")
        (self.folder / "var/lib").mkdir(parents=True)
        (self.folder / "var/lib/reconcile").symlink_to("../../lib/reconcile")  # where probes look for records
        for path, text in gpu.BOOT.items():
            self.put(path, text)
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
        self._stops()
        self.disk.lose_power(choices)
        if not down:
            self.starts()

    def shuts_down(self) -> None:
        """All is written before the power goes."""
        self._stops()
        self.disk.shut_down()

    def _stops(self) -> None:
        self.boot, self.up, self.down_at, self.back_at = self.boot + 1, False, None, None
        current, self.unit = self.unit, None
        for unit in self.units.values():
            unit.gone = True
            if unit.working and unit is not current:
                unit.turn.cut(PowerLost())
        self.units = {}

    def starts(self) -> None:
        """A boot, with the driver that is on disk where that lets itself be loaded."""
        self.up, self.back_at, self.started = True, None, self.clock()
        self.put("/proc/sys/kernel/hostname", self.text("/etc/hostname") or "localhost\n")
        self.gpu.boots(refused=self.point(self, "boot") == "refused")
        self.put("/proc/driver/nvidia/version", f"NVRM version: NVIDIA  {self.gpu.loaded}  Release" if self.gpu.loaded else None)

    def restarts(self) -> None:
        """By hand: it is back at once."""
        self.shuts_down()
        self.starts()

    def passes(self) -> None:
        """Time went on: what is due of a restart happens."""
        if self.down_at is not None and self.clock() >= self.down_at:
            away = VERY_LONG if self.point(self, "restart") == "away" else AWAY
            self.shuts_down()
            self.back_at = self.clock() + away
        if self.back_at is not None and self.clock() >= self.back_at:
            self.starts()

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
        if "reboot" in json.loads(self.place(f"/lib/reconcile/steps/{token}-{number}.json").read_text()):
            self.gpu.wanted = self.gpu.asked
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
        if argv[0] == "dnf" and (refused := dnf.refusal(dnf.lines(argv, given), self._enabled)):
            return subprocess.CompletedProcess(argv, 1, b"", refused.encode())
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
        if argv == ["systemctl", "--no-block", "reboot"]:
            yield self._restart
            return
        for verb, *names in dnf.lines(argv, given):
            for name in names:
                yield partial(self._package, verb, name)

    def _enabled(self, version: str) -> bool:
        return self.text(gpu.STREAM_FILE) == gpu.enabled(version)

    def _restart(self) -> None:
        self.down_at = self.clock() + GOES_DOWN

    def _name(self, path: str, name: str) -> None:
        if path.startswith("/etc"):  # written without an fsync, as far as we may rely on
            self.disk.remember(str(self.place(path)))
        self.put(path, f"{name}\n")

    def _package(self, verb: str, what: str) -> None:
        if verb == "install":
            found = re.fullmatch(r"(.+)-([^-]+-[^-]+)", what)
            assert found
            self.packages[found[1]] = found[2]
            if found[1] == gpu.PACKAGES[0]:  # DKMS: rpm says that all is well, whatever came of it
                self.gpu.module = None if self.point(self, "build") == "unbuilt" else found[2].partition("-")[0]
        elif verb == "remove":
            self.packages.pop(what, None)

    def answer(self, argv: list[str]) -> dict[str, Any]:
        """A command that only looks."""
        out = ""
        if argv[:2] == ["rpm", "-qa"]:
            out = dnf.installed(self.packages)
        elif argv[0] == "dnf":
            out = dnf.offered(argv, self._enabled)
        return {"out": out.encode(), "err": b"", "status": 0, "error": "", "ms": 0.0, "cpu": 0.0}
