"""Which OS packages a node shall have, as resources: what the Cluster says, its stack, and the stack's locks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from reconciler.model.desired import PackageSpec, Resource, ResourceId
from reconciler.model.version import is_prefix, is_version, narrower
from reconciler.source.merge import Leaves, Said
from reconciler.source.report import Report
from reconciler.source.stacks import Stack
from reconciler.source.system_locks import SystemLocks


@dataclass(slots=True)
class Packages:
    """Makes the resources once for all nodes with the same settings. `first`: whether a mistake is met for the first time."""

    report: Report
    locks: SystemLocks
    first: Callable[[str, Said, Said], bool]
    _found: dict[tuple[int, str], tuple[Resource, ...]] = field(default_factory=dict)
    _made: dict[tuple[int, str, str | None, str | None], Resource] = field(default_factory=dict)

    def of(self, packages: Leaves, stack: Stack) -> tuple[Resource, ...]:
        """All of a node; `packages` has to stay alive."""
        return self._declared(packages, stack) + self._of_the_stack(packages, stack)

    def _declared(self, packages: Leaves, stack: Stack) -> tuple[Resource, ...]:
        """What the Cluster says; a package that the stack names as well is there once a distribution of the stack."""
        label = (id(packages), stack.name)
        if label not in self._found:
            found: list[Resource] = []
            for (name, *_), said in packages.own.items():
                found += self._of_the_cluster(str(name), said, stack)
            below = self._declared(packages.below, stack) if packages.below else ()
            self._found[label] = below + tuple(found)
        return self._found[label]

    def _of_the_cluster(self, name: str, said: Said, stack: Stack) -> list[Resource]:
        pinned, prefix = stack.packages.get(name), is_prefix(str(said.value))
        if pinned is None:
            if prefix:
                self.locks.declare(stack.name, name, said)
            locked = self.locks.having(stack.name, name) if is_version(str(said.value)) else ()
            # what a lock says holds for nodes of its distribution only; where others may be, it goes before what is said for all
            places: tuple[str | None, ...] = (None,)
            if locked:
                places = stack.distributions or (None, *locked)
            return [self._package(name, said, stack, d) for d in places]
        agreed = {d: self._agreed(said, pinned.get(d), stack, d) for d in stack.distributions}
        if prefix and all(agreed.values()):  # a contradiction is not blamed on a lock as well
            self.locks.declare(stack.name, name, said)
        return [self._package(name, one or said, stack, d) for d, one in agreed.items()]

    def _of_the_stack(self, packages: Leaves, stack: Stack) -> tuple[Resource, ...]:
        """What the stack says and `packages` does not."""
        names = [name for name in stack.packages if (name,) not in packages]
        return tuple(self._package(n, said, stack, d) for n in names for d, said in stack.packages[n].items())

    def _agreed(self, said: Said, pinned: Said | None, stack: Stack, distribution: str) -> Said | None:
        """Of the node's word and the stack's the one that says more; None and a problem where they contradict each other."""
        if pinned is None or said.value == pinned.value or (pinned.value == "present" and said.value != "absent"):
            return said
        if said.value == "present" and pinned.value != "absent":
            return pinned
        both = str(said.value), str(pinned.value)
        if all(map(is_version, both)) and (more := narrower(*both)):
            return said if more == said.value else pinned
        if self.first("conflict", said, pinned):
            data = {"found": said.value, "other": pinned.value, "stack": stack.name, "distribution": distribution}
            code = "package-conflict"
            self.report.say(said.origin, code, said.path, data=data, place=str(pinned.origin))
        return None

    def _package(self, name: str, said: Said, stack: Stack, distribution: str | None) -> Resource:
        state = str(said.value)
        locked = self.locks.version(stack.name, distribution, name, state) if distribution and is_version(state) else None
        key = (id(said), name, distribution, locked)
        if key not in self._made:
            at = said.document.key(said.path)
            self._made[key] = Resource(ResourceId("Package", name), _spec(name, state, locked), at, distribution=distribution)
        return self._made[key]


def _spec(name: str, state: str, locked: str | None) -> PackageSpec:
    if state == "present":
        return PackageSpec(name, "present")
    if state == "absent":
        return PackageSpec(name, "absent")
    return PackageSpec(name, "prefix" if is_prefix(state) else "exact", state, locked)
