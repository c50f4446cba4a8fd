"""What may happen to a site, as values: a sequence of acts is all that a run of the model depends on."""

from __future__ import annotations

from dataclasses import dataclass

NODES = ("a", "b", "c")
CONTROLLERS = ("one", "two")
FILES = ("/etc/motd", "/etc/deep/down/site.conf")
PACKAGES = ("alpha", "beta")
VERSIONS = ("1-1", "2-1", "3-1")
NOT_OFFERED = "9-1"
GPU_NODES = ("a", "b")
DRIVERS = ("580.10", "580.20", "590.10")  # two of one module stream, one of another

# kind of fault -> the points at which it may strike
FAULTS: dict[str, tuple[str, ...]] = {
    "controller-killed": ("send", "answered", "journal-before", "journal-torn", "journal-after", "knock"),
    "controller-interrupted": ("send", "knock"),
    "controller-slept": ("send", "answered", "knock"),
    "replaced-by-another": ("send", "knock"),
    "power-lost": ("send", "answered", "disk", "command", "knock"),
    "node-down": ("send", "answered", "disk", "command"),
    "link-lost": ("send",),
    "answer-lost": ("answered",),
    "answer-late": ("answered",),
    "program-killed": ("disk",),
    "unit-killed": ("command", "unit-disk"),
    "disk-full": ("disk", "unit-disk"),
    "command-fails": ("command",),
    "command-does-nothing": ("command",),
    "command-hangs": ("command",),
    "changed-by-hand": ("send", "answered"),
    "wall-clock-set-back": ("send",),
    "gpu-taken": ("look",),
    "restarted-by-hand": ("send", "answered", "knock"),
    "module-not-built": ("build",),
    "module-refused": ("boot",),
    "stays-away": ("restart",),
}
# those that a driver's change can meet and that say something new there
DRIVER_FAULTS = (
    *(kind for kind, points in FAULTS.items() if {"knock", "look", "build", "boot", "restart"} & set(points)),
    *("node-down", "command-does-nothing", "link-lost", "answer-lost", "answer-late", "unit-killed", "program-killed"),
)


@dataclass(frozen=True)
class Fault:
    """Strikes once, at the first of its points that is at least the `at`-th point of the apply."""

    kind: str
    at: int


@dataclass(frozen=True)
class Edit:
    """The manifest: `what` is a path, a package, `driver`, `max` or `canary`; value None: not declared any more."""

    what: str
    value: str | None


@dataclass(frozen=True)
class Rollback:
    """The manifest of so many revisions ago, as a new revision."""

    back: int


@dataclass(frozen=True)
class ByHand:
    """Somebody changes a node: a path, a package, `driver` (its packages and the module on disk), `module` (on disk alone), `gpu`
    (a process takes one, None: leaves it), `reboot`. None: removed."""

    node: str
    what: str
    value: str | None


@dataclass(frozen=True)
class Apply:
    """One controller applies. `saved`: the plan that was saved so many plans ago, where there is one. `on`: only this node."""

    controller: str = "one"
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    saved: int | None = None
    on: str | None = None


@dataclass(frozen=True)
class Look:
    """One controller plans; nothing may be written on any node. The plan is saved."""

    controller: str = "one"


@dataclass(frozen=True)
class Power:
    """A node loses its power, and stays down or is back at once."""

    node: str
    down: bool
    seed: int = 0


@dataclass(frozen=True)
class Up:
    """All nodes are up."""


@dataclass(frozen=True)
class Passes:
    """Seconds pass, in which steps that still run go on."""

    seconds: int


@dataclass(frozen=True)
class WallClock:
    """The controller's wall clock jumps."""

    seconds: int


@dataclass(frozen=True)
class Heal:
    """All is well again: one apply has to make the nodes equal the manifest, and the next one has nothing to do."""

    controller: str = "one"


Act = Edit | Rollback | ByHand | Apply | Look | Power | Up | Passes | WallClock | Heal
