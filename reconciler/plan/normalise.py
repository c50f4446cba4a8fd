"""A node's state as it is kept in the history: what is stable, sorted, and worth a difference."""

from __future__ import annotations

from typing import Any

from reconciler.facts import hostname, os_release, packages
from reconciler.kinds import KINDS
from reconciler.model.desired import DesiredNode
from reconciler.model.fact import Absent, Fact, Facts, Probe, Value
from reconciler.model.plan import Selection
from reconciler.plan.scope import probes_of, scope, unique

FORMAT = "reconcile-snapshot/1"


def probes(node: DesiredNode) -> tuple[Probe, ...]:
    """Everything that a snapshot of this node holds."""
    own = [os_release.PROBE, hostname.PROBE, packages.RPM, packages.DEB, packages.LOCK]
    return unique([*own, *probes_of(node, node.resources)])


def normalise(node: DesiredNode, facts: Facts) -> dict[str, Any]:
    """The facts as plain values: no time, no boot id, no duration, so that the same state is the same text."""
    found = scope(node, facts, Selection())
    return {
        "format": FORMAT,
        "node": node.name,
        "distribution": _plain(os_release.distribution(facts)),
        "hostname": {"static": _plain(hostname.static(facts)), "running": _plain(hostname.running(facts))},
        "packages": {
            "rpm": _packages(packages.installed(facts, "dnf")),
            "deb": _packages(packages.installed(facts, "apt")),
        },
        "locks": _locks(facts),
        "resources": {
            str(r.id): _plain(KINDS[r.id.kind].observe(r.spec, found.context)) for r in sorted(found.resources, key=lambda r: r.id)
        },
    }


def _plain(fact: Fact[Any]) -> Any:
    if isinstance(fact, Value):
        return dict(fact.value) if hasattr(fact.value, "items") else fact.value
    return {"absent": fact.reason} if isinstance(fact, Absent) else {"unknown": fact.why}


def _packages(fact: Fact[dict[str, tuple[packages.Installed, ...]]]) -> Any:
    if not isinstance(fact, Value):
        return _plain(fact)
    return {name: sorted(f"{p.version}.{p.arch}" for p in found) for name, found in sorted(fact.value.items())}


def _locks(facts: Facts) -> Any:
    found = packages.locks(facts)
    return (
        {name: sorted(map(str, versions)) for name, versions in sorted(found.value.items())}
        if isinstance(found, Value)
        else _plain(found)
    )
