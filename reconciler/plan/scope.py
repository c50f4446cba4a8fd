"""Which declared resources are meant for a node, and what has to be asked to judge them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.facts import os_release
from reconciler.kinds import KINDS
from reconciler.kinds.base import Context, Verdict
from reconciler.model.desired import DesiredNode, FileSpec, PackageManager, Resource
from reconciler.model.fact import Fact, Facts, Probe, Value
from reconciler.model.plan import HoldReason, Selection


@dataclass(frozen=True, slots=True)
class Scope:
    """The resources of one node that are judged, or `hold`: why none of them can be."""

    resources: tuple[Resource, ...]
    context: Context
    hold: HoldReason | None = None


def wants(resource: Resource, selection: Selection) -> bool:
    """Whether `--target` asks for it: by Kind or by Kind/name."""
    return not selection.targets or resource.id.kind in selection.targets or str(resource.id) in selection.targets


def first_probes(node: DesiredNode, selection: Selection) -> tuple[Probe, ...]:
    """What to ask a node first. Each probe once."""
    return unique([os_release.PROBE, *probes_of(node, (r for r in node.resources if wants(r, selection)))])


def probes_of(node: DesiredNode, resources: Iterable[Resource]) -> list[Probe]:
    return [probe for r in resources for probe in KINDS[r.id.kind].probes(r.spec, node.manager)]


def unique(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    return tuple({probe.key: probe for probe in probes}.values())


def scope(node: DesiredNode, facts: Facts, selection: Selection) -> Scope:
    """What applies to this node, now that it said its distribution."""
    found = os_release.distribution(facts)
    manager = node.manager or _value(os_release.manager(found))
    name = _value(found)
    hold = None
    mine = [r for r in node.resources if wants(r, selection)]
    if name is None and (node.distributions or any(r.distribution for r in mine)):
        hold = HoldReason("DistributionUnknown")
    elif node.distributions and name not in node.distributions:
        hold = HoldReason("OtherDistribution", {"found": name, "declared": list(node.distributions), "stack": node.stack})
    if hold is None:
        mine = [r for r in mine if r.distribution in (None, name) and r.manager in (None, manager)]
    repositories = tuple((PurePosixPath(r.spec.path).name, r.spec.content.decode()) for r in mine if _is_repository(r))
    return Scope(tuple(mine), Context(facts, manager, _pending(repositories, mine, facts)), hold)


def _is_repository(resource: Resource) -> bool:
    return isinstance(resource.spec, FileSpec) and resource.spec.repository


def _pending(repositories: tuple[tuple[str, str], ...], mine: list[Resource], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Definitions that the node does not have as declared: the others it reads by itself, and twice would be a clash."""
    context = Context(facts)
    differing = {
        PurePosixPath(r.id.name).name for r in mine if _is_repository(r) and KINDS["File"].compare(r.spec, context).action != "none"
    }
    return tuple((name, text) for name, text in repositories if name in differing)


def _value(fact: Fact[PackageManager] | Fact[str]) -> PackageManager | str | None:
    return fact.value if isinstance(fact, Value) else None


def judge(found: Scope) -> list[tuple[Resource, Verdict]]:
    """Every resource in scope with its kind's verdict, in the order of their ranks."""
    pairs = [(r, KINDS[r.id.kind].compare(r.spec, found.context)) for r in found.resources]
    return sorted(pairs, key=lambda pair: (KINDS[pair[0].id.kind].rank(pair[0].spec), pair[0].id))
