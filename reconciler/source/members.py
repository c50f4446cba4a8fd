"""The nodes of a Cluster: host lists expanded, each node's settings laid over each other."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import ClusterSpec, Node, NodeSettings
from reconciler.model.hostlist import MAX_HOSTS, count, expand
from reconciler.model.problem import Path
from reconciler.source.merge import Layer, Leaves, Nulls, Said, flatten, overlay
from reconciler.source.parse import Document
from reconciler.source.report import Report

_SETTINGS = tuple(NodeSettings.keys())
_NODES: Path = ("spec", "nodes")


@dataclass(frozen=True, slots=True)
class Member:
    """A node as declared: `key` is its host list under spec.nodes, `settings` all that holds for it."""

    name: str
    address: str
    key: str
    profile: str | None
    settings: Layer


@dataclass(slots=True)
class Site:
    """A Cluster document, and what each of its blocks says of nodes, by the block's path."""

    document: Document
    spec: ClusterSpec
    name: str
    layers: dict[Path, Layer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        blocks: list[tuple[Path, NodeSettings]] = [(("spec",), self.spec)]
        blocks += [(("spec", "profiles", name), block) for name, block in self.spec.profiles.items()]
        blocks += [((*_NODES, hosts), block) for hosts, block in self.spec.nodes.items()]
        blocks += [(("spec", "overrides", hosts), block) for hosts, block in self.spec.overrides.items()]
        self.layers = {path: flatten(block, self.document, path, _SETTINGS) for path, block in blocks}


class _Settings:
    """Lays each block over each other one once, whatever the number of nodes that it holds for."""

    def __init__(self, site: Site, derived: Layer, nulls: Nulls) -> None:
        self._site, self._nulls = site, nulls
        self._made: dict[tuple[int, Path], Layer] = {}  # by identity of the layer below, which the values keep alive
        self._all = overlay(derived, site.layers[("spec",)], nulls)

    def of(self, key: str, profile: str | None, overrides: Iterable[str]) -> Layer:
        """What holds for the nodes of `key` which these overrides name."""
        layer = self._all if profile is None else self._over(self._all, ("spec", "profiles", profile))
        layer = self._over(layer, (*_NODES, key))
        for hosts in overrides:
            layer = self._over(layer, ("spec", "overrides", hosts))
        return layer

    def _over(self, below: Layer, path: Path) -> Layer:
        label = (id(below), path)
        if label not in self._made:
            self._made[label] = overlay(below, self._site.layers[path], self._nulls)
        return self._made[label]


def members(site: Site, report: Report, nulls: Nulls) -> tuple[Member, ...]:
    """The nodes in the order declared. Reports what is wrong with names, addresses, profiles and overrides."""
    if not _small_enough(site, report):
        return ()
    exceptions: dict[str, list[str]] = {}
    for hosts in site.spec.overrides:
        for host in expand(hosts):
            exceptions.setdefault(host, []).append(hosts)
    named = {key: _named(site, key, node, report) for key, node in site.spec.nodes.items()}
    settings, found = _Settings(site, _derived(site, named), nulls), dict[str, Member]()
    for key, node in site.spec.nodes.items():
        profile, twice = _profile(site, key, node, report), list[str]()
        for name, address in named[key]:
            if name in found:
                twice.append(name)
            else:
                found[name] = Member(name, address, key, profile, settings.of(key, profile, exceptions.get(name, ())))
        if twice:
            at, other = site.document.key((*_NODES, key)), found[twice[0]].key
            report.say(at, "node-twice", found=twice[0], other=other, others=len(twice) - 1)
    _check_overrides(site, found, report)
    return tuple(found.values())


def _small_enough(site: Site, report: Report) -> bool:
    """Refuse what stands for too many nodes before any of them is made."""
    for block, limit in (("nodes", MAX_HOSTS), ("overrides", 10 * MAX_HOSTS)):
        if sum(count(hosts) for hosts in getattr(site.spec, block)) > limit:
            report.say(site.document.key(("spec", block)), "too-many-nodes", limit=limit)
            return False
    return True


def _profile(site: Site, key: str, node: Node, report: Report) -> str | None:
    if node.profile is None or node.profile in site.spec.profiles:
        return node.profile
    at = site.document.value((*_NODES, key, "profile"))
    report.say(at, "unknown-profile", data=report.choice(node.profile, site.spec.profiles))
    return None


def _named(site: Site, key: str, node: Node, report: Report) -> list[tuple[str, str]]:
    """Name and address of each node of one key."""
    names = expand(key)
    addresses = expand(node.address) if node.address else names
    if len(addresses) != len(names):
        at = site.document.value((*_NODES, key, "address"))
        counts = {"nodes": len(names), "addresses": len(addresses)}
        report.say(at, "address-count", data=counts, hosts=key, found=node.address)
        addresses = names
    return list(zip(names, addresses, strict=True))


def _derived(site: Site, named: Mapping[str, list[tuple[str, str]]]) -> Layer:
    """What follows from `nodes`, below all that is said: `hosts`, each node's name with its address."""
    shared = Counter(address for pairs in named.values() for _, address in pairs)
    leaves: dict[Path, Said] = {}
    for key, pairs in named.items():
        at = (*_NODES, key, "address")
        for name, address in pairs:
            # an address that several nodes are reached at is a gateway's, and none of them answers to it among the others
            if shared[address] == 1 and is_node_address(address):
                leaves.setdefault((name,), Said(address, site.document, at))
    return {"hosts": Leaves(leaves)} if leaves else {}


def is_node_address(text: str) -> bool:
    """Whether it is an IP address, and one at which other machines can find a node."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_unspecified or found.is_multicast)


def _check_overrides(site: Site, found: dict[str, Member], report: Report) -> None:
    for hosts in site.spec.overrides:
        unknown = [host for host in expand(hosts) if host not in found]
        if unknown:
            at, choice = site.document.key(("spec", "overrides", hosts)), report.choice(unknown[0], found)
            report.say(at, "unknown-node", data=choice, others=len(unknown) - 1)
