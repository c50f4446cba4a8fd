"""The GPU driver that a stack declares, as a resource of the nodes that have GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reconciler.data.driver import driver_packages
from reconciler.model.desired import GpuDriverSpec, PackageSpec, Resource, ResourceId
from reconciler.model.version import is_prefix
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.source.merge import NOTHING, Layer, Leaves, Said
from reconciler.source.report import Report
from reconciler.source.stacks import Stack
from reconciler.source.system_locks import SystemLocks

NAME = "nvidia"


@dataclass(slots=True)
class Drivers:
    """Makes the driver of nodes, one resource a distribution of their stack. `first`: whether this was not said before."""

    report: Report
    locks: SystemLocks
    first: Callable[[str, Said], bool]
    _made: dict[tuple[int, str], tuple[Resource, ...]] = field(default_factory=dict)

    def of(self, settings: Layer, stack: Stack) -> tuple[Resource, ...]:
        """None for a node without GPUs, and of a stack that says nothing of a driver. `settings` have to stay alive."""
        gpus = settings.get("gpus", NOTHING)
        if not gpus or stack.driver is None:
            return ()
        label = (id(gpus), stack.name)
        if label not in self._made:
            self._made[label] = tuple(self._resources(gpus, stack, stack.driver))
        self._check_packages(settings.get("packages", NOTHING), self._made[label])
        return self._made[label]

    def _resources(self, gpus: Leaves, stack: Stack, said: Said) -> Iterator[Resource]:
        """One for each distribution of the stack (any: each that is known), since a node's own is not known here."""
        joined, counted = gpus.get(("interconnect",)), gpus.get(("count",))
        for distribution in stack.distributions or DISTRIBUTIONS:
            nvswitch = joined is not None and joined.value == "nvswitch"
            found = driver_packages(distribution, str(said.value), stack.modules, nvswitch=nvswitch)
            count = counted.value if counted and isinstance(counted.value, int) else None
            for name in found.names if distribution in stack.distributions else ():
                self.locks.declare(stack.name, name, said)
            pin = str(said.value)
            packages = tuple(self._package(stack.name, distribution, name, pin) for name in found.names)
            spec = GpuDriverSpec(pin, packages, found.stream, count)
            at = said.document.key(said.path)
            yield Resource(ResourceId("GpuDriver", NAME), spec, at, distribution, DISTRIBUTIONS[distribution][0])

    def _package(self, stack: str, distribution: str, name: str, pin: str) -> PackageSpec:
        locked = self.locks.version(stack, distribution, name, pin)
        return PackageSpec(name, "prefix" if is_prefix(pin) else "exact", pin, locked)

    def _check_packages(self, packages: Leaves, made: tuple[Resource, ...]) -> None:
        """Two hands must not move one package: what follows from the driver is not declared beside it."""
        followed = {name for r in made if isinstance(r.spec, GpuDriverSpec) for name in r.spec.names}
        for path, said in packages.items():
            if path and str(path[0]) in followed and self.first("driver-package", said):
                self.report.say(said.document.key(said.path), "driver-package", said.path, found=str(path[0]))
