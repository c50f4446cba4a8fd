"""What a person does to a node, behind the back of every controller."""

from __future__ import annotations

from tests.simulated import acts, gpu
from tests.simulated.machine import Machine


def by_hand(machine: Machine, what: str, value: str | None) -> None:
    """See `acts.ByHand`. Nobody does anything with a machine that is off, but to its disk."""
    if what in (*acts.PACKAGES, *gpu.PACKAGES):
        _package(machine, what, value)
    elif what == "driver":
        for name in gpu.PACKAGES:
            _package(machine, name, value and f"{value}-1")
    elif what == "module":
        machine.gpu.module = value
    elif what == "gpu":
        machine.gpu.take(taken=value is not None and machine.up)
    elif what == "reboot":
        if machine.up:
            machine.restarts()
    else:
        machine.put(what, value)


def _package(machine: Machine, name: str, version: str | None) -> None:
    machine.packages.pop(name, None)
    if version is not None:
        machine.packages[name] = version
    if name == gpu.PACKAGES[0]:  # DKMS builds and removes
        machine.gpu.module = version and version.partition("-")[0]
