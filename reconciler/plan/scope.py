"""Which declared resources are meant for a node, and what has to be asked to judge them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from reconciler.facts import os_release
from reconciler.kinds import KINDS
from reconciler.kinds.base import Context, Verdict
from reconciler.kinds.systemd_unit import file_of, new_content
from reconciler.model.desired import DesiredNode, FileSpec, Resource, UnitSpec
from reconciler.model.fact import Facts, Part, Probe, Run, Unknown, Value
from reconciler.model.plan import WRITING, HoldReason, Selection
from reconciler.model.units import DIRECTORY


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
    """Each key once; what several probes of a key gather is asked in one."""
    found: dict[str, Probe] = {}
    for probe in probes:
        found[probe.key] = _together(found[probe.key], probe) if probe.key in found else probe
    return tuple(found.values())


def _together(one: Probe, other: Probe) -> Probe:
    if one == other or len(one.parts) != len(other.parts):
        return other
    return Probe(other.key, tuple(_gathered(a, b) for a, b in zip(one.parts, other.parts, strict=True)))


def _gathered(one: Part, other: Part) -> Part:
    if isinstance(one, Run) and isinstance(other, Run):
        return replace(other, gathered=tuple(dict.fromkeys((*one.gathered, *other.gathered))))
    return other


def scope(node: DesiredNode, facts: Facts, selection: Selection) -> Scope:
    """What applies to this node, now that it said its distribution."""
    found = os_release.distribution(facts)
    brought = os_release.manager(found)
    manager = node.manager or (brought.value if isinstance(brought, Value) else None)
    name = found.value if isinstance(found, Value) else None
    hold = None
    mine = [r for r in node.resources if wants(r, selection)]
    if name is None and (node.distributions or any(r.distribution or (r.manager and not manager) for r in mine)):
        why, detail = (found.why, found.detail) if isinstance(found, Unknown) else ("NoSuchFile", "")
        hold = HoldReason("DistributionUnknown", {"inner": why, "detail": detail})
    elif node.distributions and name not in node.distributions:
        hold = HoldReason("OtherDistribution", {"found": name, "declared": list(node.distributions), "stack": node.stack})
    if hold is None:
        mine = _nearest([r for r in mine if r.distribution in (None, name) and r.manager in (None, manager)])
    else:  # what is declared once a distribution is one resource of the node all the same
        mine = list({r.id: r for r in mine}.values())
    return Scope(tuple(mine), Context(facts, manager, _pending(mine, facts), _written(mine, facts)), hold)


def _nearest(mine: list[Resource]) -> list[Resource]:
    """What is declared for the node's distribution goes before what is declared for all of them."""
    named = {r.id for r in mine if r.distribution}
    return [r for r in mine if r.distribution or r.id not in named]


def _pending(mine: list[Resource], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Repository definitions that will be written: the others the node reads by itself, and twice is a clash."""
    found = []
    for resource in mine:
        spec = resource.spec
        if not isinstance(spec, FileSpec) or not spec.repository:
            continue
        if KINDS["File"].compare(spec, Context(facts)).action in WRITING:
            found.append((PurePosixPath(spec.path).name, spec.content.decode("utf-8", "replace")))
    return tuple(found)


def _written(mine: list[Resource], facts: Facts) -> Mapping[str, tuple[str, ...]]:
    """Files that will be written and that units care for, each with the units to restart: those that files name, and whose own
    content it is."""
    found = {}
    for resource in mine:
        spec = resource.spec
        file = file_of(spec) if isinstance(spec, UnitSpec) else spec
        if not isinstance(file, FileSpec) or not (file.restart or file.path.startswith(f"{DIRECTORY}/")):
            continue
        verdict = KINDS["File"].compare(file, Context(facts))
        if verdict.action in WRITING:
            found[file.path] = file.restart if file is spec or new_content(verdict) else ()
    return found


def judge(found: Scope) -> list[tuple[Resource, Verdict]]:
    """Every resource in scope with its kind's verdict, in the order of their ranks."""
    pairs = [(r, KINDS[r.id.kind].compare(r.spec, found.context)) for r in found.resources]
    return sorted(pairs, key=lambda pair: (KINDS[pair[0].id.kind].rank(pair[0].spec), pair[0].id))
