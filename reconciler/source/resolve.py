"""All documents of a tree into the desired state of its clusters: every reference followed, every problem at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from reconciler.model.desired import (
    DesiredNode,
    DesiredState,
    HostnameSpec,
    PackageManager,
    Policy,
    Resource,
    ResourceId,
    Revision,
    Rollout,
)
from reconciler.model.manifest import Cluster
from reconciler.model.problem import Path
from reconciler.model.versions import MANAGERS
from reconciler.source.access import AccessReader
from reconciler.source.builds import Builds
from reconciler.source.environments import Locks
from reconciler.source.load import Declared, Documents
from reconciler.source.members import Member, Site, members
from reconciler.source.merge import NOTHING, Nulls
from reconciler.source.report import Report
from reconciler.source.resources import Resources
from reconciler.source.stacks import Stack, Stacks
from reconciler.source.system_locks import SystemLocks
from reconciler.source.tree import Recorder

_NODES: Path = ("spec", "nodes")


@dataclass(slots=True)
class Resolver:
    """Judges the documents of one tree. Problems go to `report`; a state is of use only where there are none.

    `lock_report`: where problems of locks go instead, for who is about to write them.
    """

    tree: Recorder
    documents: Documents
    report: Report
    lock_report: Report | None = None
    _owner: dict[str, str] = field(default_factory=dict)
    _nulls: Nulls = field(default_factory=dict)

    def resolve(self, revision: Revision) -> dict[str, DesiredState]:
        """The state of each Cluster, by name."""
        return self.resolve_with_locks(revision)[0]

    def resolve_with_locks(self, revision: Revision) -> tuple[dict[str, DesiredState], SystemLocks]:
        """The same, and the system locks of all stacks."""
        stacks = Stacks(self.documents, self.report, self._nulls)
        self.report.unchecked |= self.documents.unjudged
        about_locks = self.lock_report or self.report
        locks, system = Locks(self.tree, about_locks), SystemLocks(self.tree, about_locks)
        for stack in stacks:
            locks.check(stack.environments.values())
        system.read(stacks, whole=self.documents.complete)
        states = {n: self._cluster(d, stacks, system, revision) for n, d in sorted(self.documents.clusters.items())}
        system.judge(stacks, complete=self._whole())
        for said, removed in self._nulls.values():
            if not removed:
                self.report.warn(said.document.key(said.path), "null-removes-nothing", said.path)
        return states, system

    def _whole(self) -> bool:
        """Whether all that declares a package was understood."""
        return self.documents.complete and not self.documents.broken and not self.report.unchecked

    def _cluster(self, declared: Declared, stacks: Stacks, system: SystemLocks, revision: Revision) -> DesiredState:
        assert isinstance(declared.manifest, Cluster)
        site = Site(declared.document, declared.manifest.spec, declared.name)
        tree = Recorder(self.tree, dict(self.tree.taken))
        resources = Resources(tree, self.report, system)
        named = self._check_layers(site, stacks, resources)
        found = members(site, self.report, self._nulls)
        builds = Builds(site, Locks(tree, self.lock_report or self.report), self.report)
        self._check_builder(site, found)
        self._check_owners(site, found)
        access = AccessReader(tree, self.report, site).of(found)
        nodes: dict[str, DesiredNode] = {}
        for member in found:
            stack = _stack(member, named)
            manager = member.settings.get("packageManager", NOTHING).get(())
            nodes[member.name] = DesiredNode(
                name=member.name,
                access=access[member.name],
                resources=(_hostname(site, member), *resources.of(member.settings, stack), *builds.of(member, stack)),
                profile=member.profile,
                manager=_manager(manager.value) if manager else None,
                stack=stack.name if stack else None,
                distributions=stack.distributions if stack else (),
                policy=_policy(member),
            )
        builds.check_shared(nodes)
        rollout = self._rollout(site, nodes)
        return DesiredState(site.name, revision, _digest(site.name, tree), nodes, rollout)

    def _check_layers(self, site: Site, stacks: Stacks, resources: Resources) -> dict[str, Stack | None]:
        """Follow what each block names, whether a node takes the block or not; the stacks by name."""
        named: dict[str, Stack | None] = {}
        for layer in site.layers.values():
            versions = layer.get("versions", NOTHING).get(())
            if versions is not None and versions.value is not None:
                named[str(versions.value)] = stacks.named(versions, f"Cluster {site.name}")
            for field_name in ("files", "units"):
                for path, said in layer.get(field_name, NOTHING).items():
                    if path[1:] == ("source",) and said.value is not None:
                        resources.content(said)
        return named

    def _check_owners(self, site: Site, found: tuple[Member, ...]) -> None:
        """A name belongs to one node of one cluster, an address (with port and way) to one node."""
        addresses: dict[tuple[str, object], Member] = {}
        elsewhere: dict[tuple[str, str], list[str]] = {}
        shared: dict[str, list[tuple[Member, Member]]] = {}
        for member in found:
            if (other := self._owner.setdefault(member.name, site.name)) != site.name:
                elsewhere.setdefault((member.key, other), []).append(member.name)
            ssh = member.settings.get("ssh", NOTHING)
            way = tuple(said.value for key in ("port", "proxyJump") if (said := ssh.get((key,))))
            first = addresses.setdefault((member.address.lower(), way), member)
            if first is not member:
                shared.setdefault(member.key, []).append((member, first))
        for (key, other), names in elsewhere.items():
            at = site.document.key((*_NODES, key))
            self.report.say(at, "node-elsewhere", found=names[0], other=other, others=len(names) - 1)
        for key, pairs in shared.items():
            (member, first), at = pairs[0], site.document.value((*_NODES, key, "address"))
            data = {"node": member.name, "found": member.address, "other": first.name}
            self.report.say(at, "address-twice", data=data, others=len(pairs) - 1)

    def _check_builder(self, site: Site, found: tuple[Member, ...]) -> None:
        place = site.spec.environment_location
        if place is None or place.builder is None or not found:
            return
        at, names = site.document.value(("spec", "environmentLocation", "builder")), [member.name for member in found]
        if place.builder not in names:
            self.report.say(at, "unknown-node", data=self.report.choice(place.builder, names), others=0)
        elif place.type != "shared":
            self.report.say(at, "builder-not-shared")

    def _rollout(self, site: Site, nodes: dict[str, DesiredNode]) -> Rollout:
        said = site.spec.rollout
        if said is None:
            return Rollout()
        if said.canary is not None and said.canary not in nodes and nodes:
            at = site.document.value(("spec", "rollout", "canary"))
            self.report.say(at, "unknown-node", data=self.report.choice(said.canary, nodes), others=0)
        return Rollout(said.canary, said.max_unavailable or Rollout().max_unavailable, said.approve or ())


def _digest(cluster: str, tree: Recorder) -> str:
    """Over the cluster's name and, by name, all files read: lengths keep names and contents apart."""
    digest = hashlib.sha256(f"reconcile/v1 {cluster}\n".encode())
    for path, content in sorted(tree.taken.items()):
        if isinstance(content, bytes):
            name = path.encode("utf-8", "surrogateescape")
            digest.update(b"%d %d\n%b%b" % (len(name), len(content), name, content))
    return digest.hexdigest()


def _stack(member: Member, named: dict[str, Stack | None]) -> Stack | None:
    said = member.settings.get("versions", NOTHING).get(())
    return named.get(str(said.value)) if said else None


def _hostname(site: Site, member: Member) -> Resource:
    at = site.document.key((*_NODES, member.key))
    return Resource(ResourceId("Hostname", member.name), HostnameSpec(member.name), at)


def _policy(member: Member) -> Policy:
    said = member.settings.get("policy", NOTHING).get(("default",))
    return "observe" if said and said.value == "observe" else "enforce"


def _manager(value: object) -> PackageManager | None:
    return next((manager for manager in MANAGERS if manager == value), None)
