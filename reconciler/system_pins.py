"""System locks, resolved: what is declared, what the nodes have, what one node of each distribution is offered."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.facts import available, origins, os_release, packages, repositories
from reconciler.facts.live import About
from reconciler.model.desired import DesiredNode, FileSpec, GpuDriverSpec, PackageManager, PackageSpec
from reconciler.model.fact import Absent, Fact, Facts, Probe, Unknown, Value
from reconciler.model.observed import Failure
from reconciler.model.plan import HoldReason, Selection
from reconciler.model.system_lock import Locked, SystemLock, path_of
from reconciler.model.version import Version
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.observe import ask
from reconciler.plan.pin import choose
from reconciler.plan.scope import first_probes, scope, unique
from reconciler.pool import Pool
from reconciler.source.stacks import Stack
from reconciler.source.system_locks import SystemLocks, pins_of

Pins = Mapping[str, Sequence[str]]  # package -> every pin that its locked version has to meet


@dataclass(frozen=True, slots=True)
class Made:
    """One lock, before and after. `before` None: there is none that can be read; `after` None: nothing declares any more."""

    path: str
    before: SystemLock | None
    after: SystemLock | None


@dataclass(slots=True)
class Resolved:
    """What came of it. With `failures` (of nodes) or `refusals` (what no repository has) there is nothing to be written.

    `unseen`: locks that are declared, of distributions that no node which was asked runs.
    """

    locks: list[Made] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    refusals: list[HoldReason] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Seen:
    """One node that answered. `pending`: repository definitions that the manifests will write there."""

    node: DesiredNode
    distribution: str
    manager: PackageManager
    installed: Mapping[str, tuple[packages.Installed, ...]]
    pending: tuple[tuple[str, str], ...]
    facts: Facts

    def version(self, name: str) -> Version | None:
        """The one installed version of a package."""
        versions = {package.version for package in self.installed.get(name, ())}
        return versions.pop() if len(versions) == 1 else None


def declares(stack: Stack, nodes: Mapping[str, DesiredNode]) -> bool:
    """Whether a lock has anything to say: of what the stack pins, or of prefixes that its nodes want."""
    own = any(pins_of(stack, distribution) for distribution in stack.distributions)
    return own or any(True for node in nodes.values() if node.stack == stack.name for _ in _prefixes(node))


def asked(stack: Stack, nodes: Mapping[str, DesiredNode]) -> list[str]:
    """Nodes that speak for a stack, in the order of the manifests: its own; all where it has none yet. None without a pin."""
    if not declares(stack, nodes):
        return []
    return [name for name, node in nodes.items() if node.stack == stack.name] or list(nodes)


def _prefixes(node: DesiredNode, of: str | None = None) -> Iterator[tuple[str, str]]:
    """Package and pin, of one distribution or of any: prefixes, and what belongs to the driver."""
    for resource in node.resources:
        spec = resource.spec
        meant = of is None or resource.distribution in (None, of)
        if meant and isinstance(spec, PackageSpec) and spec.ensure == "prefix" and spec.version:
            yield spec.name, spec.version
        elif meant and isinstance(spec, GpuDriverSpec):
            yield from ((name, spec.version) for name in spec.names)


def resolve(
    stacks: Iterable[Stack],
    locks: SystemLocks,
    nodes: Mapping[str, DesiredNode],
    pool: Pool,
    *,
    among: Container[str],
    upgrade: bool = False,
    done: Callable[[str], None] | None = None,
) -> Resolved:
    """Every system lock of these stacks. Of `nodes` those `among` that speak for them are asked what they have, then one of each
    distribution what it is offered."""
    result = Resolved()
    wanted = {stack.name: (stack, [name for name in asked(stack, nodes) if name in among]) for stack in stacks}
    names = dict.fromkeys(name for _, own in wanted.values() for name in own)
    looked = pool.each(names, lambda name: look(nodes[name], pool), done)
    seen = {name: found for name, found in looked.items() if isinstance(found, Seen)}
    result.failures = {name: found for name, found in looked.items() if isinstance(found, Failure)}
    if result.failures:
        return result
    for stack, own in wanted.values():
        groups: dict[str, list[Seen]] = {}
        for name in own:
            groups.setdefault(seen[name].distribution, []).append(seen[name])
        _Stack(stack, groups, nodes, locks, upgrade).resolve(pool, result)
    return result


def look(node: DesiredNode, pool: Pool) -> Seen | Failure:
    """What a node is and has, in one round trip."""
    files = tuple(r for r in node.resources if isinstance(r.spec, FileSpec) and r.spec.repository)
    bare = replace(node, resources=files, distributions=())
    also = [packages.RPM, packages.DEB, repositories.FACT.probe(About())]
    facts, _ = ask(pool.channel(node.name), unique([*first_probes(bare, Selection()), *also]))
    runs, context = os_release.distribution(facts), scope(bare, facts, Selection()).context
    if not isinstance(runs, Value):
        return _unusable("DistributionUnknown", runs)
    if context.manager is None:
        return Failure("garbled", "NoPackageManager")
    installed = packages.installed(facts, context.manager)
    if not isinstance(installed, Value):
        return _unusable("PackagesUnreadable", installed)
    return Seen(node, runs.value, context.manager, installed.value, context.repositories, facts)


def _unusable(reason: str, found: Fact[object]) -> Failure:
    """A node that answered, and not what is needed of it."""
    inner, detail = (found.why, found.detail) if isinstance(found, Unknown) else ("NoSuchFile", "")
    if isinstance(found, Absent):
        inner = found.reason
    return Failure("garbled", reason, {"inner": inner, "detail": detail})


@dataclass(frozen=True, slots=True)
class _Stack:
    """One stack, and the nodes that speak for it by distribution."""

    stack: Stack
    groups: Mapping[str, list[Seen]]
    nodes: Mapping[str, DesiredNode]
    locks: SystemLocks
    upgrade: bool

    def resolve(self, pool: Pool, result: Resolved) -> None:
        name, own = self.stack.name, self.stack.distributions
        for distribution in sorted(own or DISTRIBUTIONS.keys() & {*self.locks.places(name), *self.groups}):
            path, group = path_of(name, distribution), self.groups.get(distribution, [])
            pins, before = self._pins(distribution, group), self.locks.of(name, distribution)
            if not pins:
                if distribution in self.locks.places(name) and (before or not declares(self.stack, self.nodes)):
                    result.locks.append(Made(path, before, None))
            elif not group:
                result.unseen.append(path)
            else:
                self._lock(pool, result, (path, distribution), pins, group)

    def _pins(self, distribution: str, group: list[Seen]) -> dict[str, list[str]]:
        """What the stack says, its nodes of this distribution, and those that were not asked where the lock has it already."""
        found = {name: [str(said.value)] for name, said in pins_of(self.stack, distribution).items()}
        before = self.locks.of(self.stack.name, distribution)
        seen = {one.node.name for of in self.groups.values() for one in of}
        known = before.packages if before else {}
        mine = [p for one in group if one.node.stack == self.stack.name for p in _prefixes(one.node, distribution)]
        others = [node for node in self.nodes.values() if node.stack == self.stack.name and node.name not in seen]
        for name, prefix in [*mine, *(p for node in others for p in _prefixes(node, distribution) if p[0] in known)]:
            if prefix not in found.setdefault(name, []):
                found[name].append(prefix)
        return found

    def _lock(self, pool: Pool, result: Resolved, at: tuple[str, str], pins: Pins, group: list[Seen]) -> None:
        path, distribution = at
        speaker, before = group[0], self.locks.of(self.stack.name, distribution)
        answer = pool.each([speaker.node.name], lambda _: _offered(speaker, tuple(sorted(pins)), pool))[speaker.node.name]
        if isinstance(answer, Failure):
            result.failures[speaker.node.name] = answer
            return
        offered, places = answer
        chosen: dict[str, Locked] = {}
        for name, wanted in sorted(pins.items()):
            installed = [version for seen in group if (version := seen.version(name))]
            former = before.packages.get(name) if before else None
            there = offered.get(name, ())
            found = choose(wanted, there, installed, former.version if former else None, upgrade=self.upgrade)
            if found:
                chosen[name] = Locked(found)
                continue
            about = {
                "name": name,
                "wanted": list(wanted),
                "offered": [str(v) for v in there],
                "node": speaker.node.name,
                "lock": path,
            }
            result.refusals.append(HoldReason("NothingMeets" if there else "NothingOffers", about))
        result.locks.append(Made(path, before, SystemLock(distribution, places, chosen, before.notes if before else ())))


def _probe(seen: Seen, names: tuple[str, ...]) -> Probe:
    """The driver's packages are in streams of dnf that may not be enabled yet."""
    driver = any(isinstance(resource.spec, GpuDriverSpec) for resource in seen.node.resources)
    return available.probe(seen.manager, names, seen.pending, every_stream=driver)


def _offered(seen: Seen, names: tuple[str, ...], pool: Pool) -> tuple[Mapping[str, tuple[Version, ...]], tuple[str, ...]] | Failure:
    """What the node's repositories have of these packages, and which repositories that are."""
    facts, _ = ask(pool.channel(seen.node.name), (_probe(seen, names),))
    offered, places = available.offered(facts, seen.manager), origins.origins(seen.facts, seen.manager, seen.pending)
    for found in (offered, places):
        if not isinstance(found, Value):
            detail = found.detail or found.why if isinstance(found, Unknown) else found.reason
            return Failure("garbled", "RepositoriesUnreadable", {"detail": detail})
    assert isinstance(offered, Value)
    assert isinstance(places, Value)
    return offered.value, places.value
