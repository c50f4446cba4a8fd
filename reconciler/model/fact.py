"""The three answers to every question that is put to a node: a value, Absent, or Unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T", covariant=True)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """What was found."""

    value: T


@dataclass(frozen=True, slots=True)
class Absent:
    """It was looked for and is not there. `reason` is a code, such as `NotInstalled` or `NoSuchFile`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It could not be looked at. `why` is a code; `detail` is what the node said, for people only. Never treated as absent."""

    why: str
    detail: str = ""


Fact = Value[T] | Absent | Unknown


@dataclass(frozen=True, slots=True)
class Run:
    """Part of a probe: run `argv` on the node; `deadline` in seconds, after which it is killed and reported.

    `unprivileged`: as the user nobody, and only where that fails as root. For programs that write even when they look.
    `gathered`: arguments behind `argv`; those of several probes with the same key become one call.
    """

    argv: tuple[str, ...]
    deadline: float = 20.0
    unprivileged: bool = False
    gathered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """Part of a probe: the bytes of a regular file of at most `limit` bytes."""

    path: str
    limit: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Stat:
    """Part of a probe: type, mode, owner, group, size, SHA-256 of `path` (a link is not followed), as a JSON object.

    `owner` and `group` are names that have to exist on the node: the answer says whether they do.
    """

    path: str
    owner: str = "root"
    group: str = "root"


@dataclass(frozen=True, slots=True)
class Available:
    """Part of a probe: which versions of `names` the node's repositories offer, `repositories` (file name, text) included.

    Nothing but /run is written: the package manager works on private caches there. `every_stream`: dnf's packages of module streams
    that are not enabled as well.
    """

    manager: str
    names: tuple[str, ...]
    repositories: tuple[tuple[str, str], ...] = ()
    deadline: float = 120.0
    every_stream: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Part of a probe: a fragment of the node program (`reconciler/node/fragments/NAME.py`), in a process of its own.

    Its answer is one JSON value, in `Raw.out`. `arguments` is a JSON object as text, so that a probe can be compared and hashed.
    `quick`: it reads a few files of /proc, /sys or /etc and waits for nobody: it shares its process with others of the kind, and
    where that does not end well each of them is asked again in a process of its own.
    """

    fragment: str
    arguments: str = "{}"
    deadline: float = 20.0
    quick: bool = False


Part = Run | Read | Stat | Available | Ask


@dataclass(frozen=True, slots=True)
class Probe:
    """What to ask a node for one fact. `key` names the fact: `hostname`, `file:/etc/motd`."""

    key: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """One part's answer as the node gave it, not yet understood.

    `status` is the exit status of a command, None where none ended; `error` is a code when the part could not be read:
    `missing`, `denied`, `deadline`, `too-large`, `not-regular`, `not-recorded` or `io`. Times are the node's, the processor's with
    that of all processes that the part started.
    """

    out: bytes = b""
    err: bytes = b""
    status: int | None = None
    error: str = ""
    source: str = ""
    milliseconds: float = 0.0
    cpu_milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A probe's raw answer and where it comes from: `taken` is the controller's clock (Unix seconds), `boot_id` the node's boot."""

    key: str
    raws: tuple[Raw, ...]
    taken: float
    boot_id: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What one look cost on the node: time from request to answer, and the processor time of the program itself (milliseconds)."""

    milliseconds: float
    cpu_milliseconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """All readings of one node at one time, by key. `spent` is None where nobody was asked: a recording."""

    readings: Mapping[str, Reading] = field(default_factory=dict)
    spent: Spent | None = None
    _made: dict[Callable[[Facts], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, understand: Callable[[Facts], Made]) -> Made:
        """What a pure function makes of these readings, made at its first use: every package of a node rests on one long list."""
        if understand not in self._made:
            self._made[understand] = understand(self)
        made: Made = self._made[understand]
        return made

    def raws(self, key: str) -> tuple[Raw, ...] | None:
        """The raw answers of one probe, or None where it was not asked."""
        reading = self.readings.get(key)
        return reading.raws if reading else None
