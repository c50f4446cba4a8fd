"""The layers of a GPU driver on a node, as facts: what a boot would load, what is loaded, who uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import driver, gpu_users, kernel, reboots
from reconciler.facts.gpu_users import GpuUser
from reconciler.facts.live import About
from reconciler.model.fact import Absent, Fact, Facts, Probe, Unknown, Value

# with modinfo: modules that DKMS compresses do not say their version otherwise
_DRIVER, _KERNEL, _USERS = driver.MODULES, kernel.FACT, gpu_users.FACT
# they serve whoever uses a GPU, do no work of their own, and start again by themselves
DAEMONS = frozenset(
    f"{name}.service"
    for name in ("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-imex", "nvidia-dcgm", "dcgm", "dcgm-exporter")
)


@dataclass(frozen=True, slots=True)
class Layers:
    """`next_kernel`: which boots next. `on_disk`: the module that it would load, of the running kernel where that is not known.

    `headers`: a module can be built for it. `loaded`: Absent where none is. `users`: processes that hold a GPU, daemons left out;
    Unknown where there may be more than were seen. `rebooted`: what a reboot of ours was to bring, once it is over.
    """

    gpus: Fact[int]
    next_kernel: Fact[str]
    headers: Fact[bool]
    on_disk: Fact[str]
    loaded: Fact[str]
    users: Fact[tuple[GpuUser, ...]]
    rebooted: Fact[str]


def probes() -> tuple[Probe, ...]:
    """What has to be asked for `layers`."""
    return (*(fact.probe(About()) for fact in (_DRIVER, _KERNEL, _USERS)), reboots.PROBE)


def layers(facts: Facts, resource: str) -> Layers:
    """`resource`: whose reboots are meant."""
    found: Fact[driver.Driver] = _DRIVER.read(facts.raws(_DRIVER.name))
    kernels: Fact[kernel.Kernel] = _KERNEL.read(facts.raws(_KERNEL.name))
    boots = _next_kernel(kernels)
    known = found.value if isinstance(found, Value) else None
    missing = found if isinstance(found, Unknown) else Unknown("NotAsked")
    return Layers(
        gpus=known.gpus if known else missing,
        next_kernel=boots,
        headers=_headers(kernels, boots),
        on_disk=_on_disk(known, boots) if known else missing,
        loaded=known.loaded_version if known else missing,
        users=_users(_USERS.read(facts.raws(_USERS.name))),
        rebooted=_rebooted(facts, resource),
    )


def _next_kernel(kernels: Fact[kernel.Kernel]) -> Fact[str]:
    if not isinstance(kernels, Value):
        return kernels
    entry = kernels.value.next.entry
    return entry.value.release if isinstance(entry, Value) else entry


def _headers(kernels: Fact[kernel.Kernel], boots: Fact[str]) -> Fact[bool]:
    if not isinstance(kernels, Value) or not isinstance(boots, Value):
        return boots if isinstance(boots, Unknown) else Unknown("NotAsked")
    every = kernels.value.installed
    if not isinstance(every, Value):
        return every if isinstance(every, Unknown) else Unknown("NotSaid")
    return every.value[boots.value].headers if boots.value in every.value else Value(False)


def _on_disk(found: driver.Driver, boots: Fact[str]) -> Fact[str]:
    """A module that lies there and that modprobe does not know would not be loaded: it counts as none."""
    if not isinstance(boots, Value):
        return found.on_disk
    if not isinstance(found.kernels, Value):
        return found.kernels
    module = found.kernels.value.get(boots.value, Absent("NotOnDisk"))
    if not isinstance(module, Value):
        return module
    if isinstance(module.value.listed, Unknown):
        return module.value.listed
    return module.value.version if module.value.listed == Value(True) else Absent("NotListed")


def _users(found: Fact[gpu_users.GpuUsers]) -> Fact[tuple[GpuUser, ...]]:
    """Without a loaded driver there is none."""
    if isinstance(found, Absent):
        return Value(())
    if not isinstance(found, Value):
        return found
    users = tuple(u for u in found.value.users if not (isinstance(u.unit, Value) and u.unit.value in DAEMONS))
    if not users and isinstance(found.value.complete, Unknown):
        return found.value.complete
    return Value(users)


def _rebooted(facts: Facts, resource: str) -> Fact[str]:
    noted = reboots.noted(facts)
    if not isinstance(noted, Value):
        return noted if isinstance(noted, Unknown) else Unknown("NotAsked")
    note = noted.value.get(resource)
    return Value(note.wanted) if note and note.over else Absent("NotRebooted")


def told(users: tuple[GpuUser, ...]) -> list[Mapping[str, Any]]:
    """Who holds a GPU, for people: pid, command, unit and GPU numbers, each None where it is not known."""

    def plain(fact: Fact[Any]) -> Any:
        return fact.value if isinstance(fact, Value) else None

    return [{"pid": plain(u.pid), "command": plain(u.command), "unit": plain(u.unit), "gpus": list(u.minors)} for u in users]
