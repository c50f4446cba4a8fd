"""Which Python environments a node shall have, as resources."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from reconciler.model.desired import PythonEnvironmentSpec, Resource, ResourceId
from reconciler.source.environments import Declared, Locks
from reconciler.source.members import Member, Site
from reconciler.source.merge import NOTHING, Said
from reconciler.source.report import Report
from reconciler.source.stacks import Stack

_PLACE = ("spec", "environmentLocation")
KEEP = 3  # builds of an environment that stay, the linked one among them


@dataclass(slots=True)
class Builds:
    """Makes the resources of one cluster's nodes."""

    site: Site
    locks: Locks
    report: Report
    _judged: set[tuple[int, str]] = field(default_factory=set)
    _builders: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)  # shared environment -> node -> digest, path of lock

    def of(self, member: Member, stack: Stack | None) -> tuple[Resource, ...]:
        """Every environment of the node whose lock can be used; of others there are problems already."""
        found = (self._resource(member, declared) for declared in self._chosen(member, stack))
        return tuple(resource for resource in found if resource)

    def check_shared(self, known: Container[str]) -> None:
        """Once all nodes are there: what is shared has one lock, since it has one link, and its builder has it."""
        place = self.site.spec.environment_location
        for name, nodes in self._seen.items():
            by_lock: dict[str, tuple[str, str]] = {}
            for node, (lock, path) in nodes.items():
                by_lock.setdefault(lock, (node, path))
            if len(by_lock) > 1:
                (one, path), (other, another), *_ = by_lock.values()
                at, two = self.site.document.value(_PLACE), {"lock": path, "other": other, "another": another}
                self.report.say(at, "shared-two-locks", data={"found": name, "node": one, **two})
            builder = place.builder if place else None
            if builder and builder not in nodes and builder in known:
                at = self.site.document.value((*_PLACE, "builder"))
                self.report.say(at, "builder-lacks", found=name, builder=builder)

    def _chosen(self, member: Member, stack: Stack | None) -> list[Declared]:
        """What the node says, or all of the stack's where it has GPUs; nothing of a stack that cannot be judged."""
        if stack is None and member.settings.get("versions", NOTHING):
            return []
        said = member.settings.get("environments", NOTHING).get(())
        offered = stack.environments if stack else {}
        if said is None:
            return list(offered.values()) if member.settings.get("gpus", NOTHING) else []
        names = said.value if isinstance(said.value, tuple) else ()
        self._check_names(said, names, offered, stack)
        return [offered[name] for name in dict.fromkeys(names) if name in offered]

    def _check_names(self, said: Said, names: tuple[str, ...], offered: Mapping[str, Declared], stack: Stack | None) -> None:
        """A name that the stack does not have; a mistake in a profile is said once, not for each of its nodes."""
        key = (id(said), stack.name if stack else "")
        if key in self._judged:
            return
        self._judged.add(key)
        for i, name in enumerate(names):
            if name not in offered:
                at = said.document.value((*said.path, i))
                self.report.say(at, "unknown-environment", data=self.report.choice(name, offered))

    def _resource(self, member: Member, declared: Declared) -> Resource | None:
        lock = self.locks.of(declared)
        if lock is None:
            return None
        place = self.site.spec.environment_location
        shared = place is not None and place.type == "shared"
        if shared:
            self._seen.setdefault(declared.name, {})[member.name] = (lock.digest, declared.lock)
        # who comes first builds for all, unless one is named
        builder = self._builders.setdefault(declared.name, (place and place.builder) or member.name) if shared else None
        wheels = member.settings.get("mirrors", NOTHING).get(("wheels",))
        spec = PythonEnvironmentSpec(
            name=declared.name,
            python=lock.python,
            digest=lock.digest,
            requirements=lock.requirements(),
            versions=tuple((name, pinned.version) for name, pinned in sorted(lock.pinned.items())),
            pins=tuple(sorted(declared.packages)),
            wheelhouse=str(wheels.value) if wheels else None,
            keep=self.site.spec.keep_environments or KEEP,
            shared=shared,
            builder=None if builder == member.name else builder,
        )
        return Resource(ResourceId("PythonEnvironment", declared.name), spec, declared.origin)
