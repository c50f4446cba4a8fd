"""The builds of one Python environment on a node: which are whole, which one is linked, and what the next one would need."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.facts import raw
from reconciler.model.fact import Absent, Ask, Fact, Facts, Probe, Unknown, Value

ROOT = "/opt/ai/env"
DEADLINE = 120.0  # seconds: an environment of 30,000 files on a cold disk


@dataclass(frozen=True, slots=True)
class Damage:
    """What is not as it was sealed: packages by name as (sealed, found), and files: how many, and the first of them."""

    packages: Mapping[str, tuple[str | None, str | None]]
    files: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Build:
    """One directory. Not `sealed`: cut off before its end. `made` in Unix seconds; `damage` None: none, or not looked for.

    `size` in bytes and `users` only where they were asked for: None, not asked.
    """

    sealed: bool
    lock: str | None
    python: str | None
    made: float | None
    damage: Damage | None
    size: int | None = None
    users: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A lock that a person rolled back from: it is not brought back."""

    lock: str
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class Builds:
    """`link`: the build that the environment's name leads to; Absent: nothing has the name; Unknown(NotALink): something else has.

    The last three are known only where a build is wanted and none is there: `python` and `installer` None: the node has none;
    `missing`: wheels that the wheelhouse lacks, Absent without one.
    """

    link: Fact[str]
    builds: Mapping[str, Build]
    rejected: Rejected | None = None
    python: str | None = None
    installer: str | None = None
    missing: Fact[tuple[str, ...]] = field(default_factory=lambda: Unknown("NotAsked"))

    def usable(self, lock: str) -> str | None:
        """The newest whole build of a lock (hex digest)."""
        fit = [(b.made or 0.0, name) for name, b in self.builds.items() if b.sealed and b.lock == lock and b.damage is None]
        return max(fit)[1] if fit else None

    def next(self, lock: str) -> str:
        """The name of the build that would be made of a lock."""
        known = [*self.builds, *([self.link.value] if isinstance(self.link, Value) else [])]
        numbers = [int(name.rpartition("-")[2]) for name in known if name.startswith(f"{lock[:12]}-")]
        return f"{lock[:12]}-{max(numbers, default=0) + 1}"


def probe(
    name: str,
    wanted: Mapping[str, Any] | None = None,
    *,
    sizes: bool = False,
    judge: bool = True,
    users: bool = False,
    shared: bool = False,
) -> Probe:
    """Ask for one environment. `wanted`: `lock` (12 digits), `python`, `versions`, `wheelhouse` of what is declared.

    `sizes`: also bytes and users of each build; `users`: only these; not `judge`: no build is compared with its seal, which takes
    no time. `shared`: what is not a mount has no builds.
    """
    flags = {"sizes": sizes, "judge": judge, "users": users, "shared": shared}
    arguments = {"path": ROOT, "name": name, **(wanted or {}), **flags}
    return Probe(f"environment:{name}", (Ask("builds", json.dumps(arguments, sort_keys=True), DEADLINE),))


def found(facts: Facts, name: str) -> Fact[Builds]:
    """What the node answered to `probe`. Never raises."""
    return parse(raw.fragment(raw.part(facts, f"environment:{name}")))


def used(elsewhere: Iterable[Fact[Builds]], *more: str | None) -> tuple[str, ...] | None:
    """Builds that somebody needs on nodes which see the same folder, and `more`; None where one of them did not say."""
    names = {name for name in more if name}
    for there in elsewhere:
        if not isinstance(there, Value):
            return None
        for name, build in there.value.builds.items():
            if build.users is None:
                return None
            names |= {name} if build.users else set()
    return tuple(sorted(names))


def parse(answer: Fact[Any]) -> Fact[Builds]:
    """The fragment's answer as a value; Unknown where it has not the agreed form, and where what is shared is not mounted."""
    if isinstance(answer, Absent):
        return Unknown("NotReadable", answer.reason)
    if not isinstance(answer, Value):
        return answer
    try:
        said = answer.value
        if said.get("mounted") is False:
            return Unknown("NoSharedMount", ROOT)
        return Value(
            Builds(
                link=_link(said["link"]),
                builds={str(name): _build(about) for name, about in said["builds"].items()},
                rejected=_rejected(said["rejected"]),
                python=_text(said.get("python")),
                installer=_text(said.get("installer")),
                missing=_missing(said["wheels"]) if "wheels" in said else Unknown("NotAsked"),
            )
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        return Unknown("WrongShape", f"{type(e).__name__}: {e}"[:80])


def _text(said: Any) -> str | None:
    return None if said is None else str(said)


def _link(said: Mapping[str, Any]) -> Fact[str]:
    if "target" in said:
        return Value(str(said["target"]))
    error = str(said["error"])
    if error == "missing":
        return Absent("NoSuchFile")
    return Unknown("PermissionDenied") if error == "denied" else Unknown("NotALink")


def _build(said: Mapping[str, Any]) -> Build:
    made = said.get("made")
    return Build(
        sealed=said["sealed"] is True,
        lock=_text(said.get("lock")),
        python=_text(said.get("python")),
        made=None if made is None else float(made),
        damage=_damage(said.get("damage")),
        size=None if said.get("bytes") is None else int(said["bytes"]),
        users=tuple(map(str, said["users"])) if "users" in said else None,
    )


def _damage(said: Mapping[str, Any] | None) -> Damage | None:
    if said is None:
        return None
    packages = {str(n): (_text(before), _text(after)) for n, (before, after) in sorted(said["packages"].items())}
    return Damage(packages, int(said["files"]), tuple(map(str, said["first"])))


def _rejected(said: Mapping[str, Any] | None) -> Rejected | None:
    return None if said is None else Rejected(str(said["lock"]), str(said["by"]), float(said["at"]))


def _missing(said: Mapping[str, Any] | None) -> Fact[tuple[str, ...]]:
    if said is None:
        return Absent("NoWheelhouse")
    if "error" in said:
        return Unknown("WheelhouseUnreadable", str(said["error"]))
    return Value(tuple(map(str, said["missing"])))
