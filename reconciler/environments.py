"""What a person does with builds of Python environments: look, go back, clean up."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler import __version__
from reconciler.apply.journal import Journal
from reconciler.apply.work import Stop
from reconciler.engine import Applied, Engine
from reconciler.errors import Usage
from reconciler.facts import environment_builds as fact
from reconciler.facts.environment_builds import Builds
from reconciler.kinds import python_environment as kind
from reconciler.kinds.base import spec_digest
from reconciler.model.desired import DesiredNode, PythonEnvironmentSpec, Resource, ResourceId
from reconciler.model.fact import Fact, Unknown, Value
from reconciler.model.observed import Failure
from reconciler.model.plan import Action, Change, FieldChange, NodePlan, Plan, Reason, Step, Wave
from reconciler.observe import ask
from reconciler.plan.cost import cost
from reconciler.plan.shared import sharers
from reconciler.transport.base import Channel

Seen = Mapping[str, Mapping[str, Fact[Builds]] | Failure]


def declared(node: DesiredNode) -> dict[str, Resource]:
    """The node's environments by name."""
    return {r.id.name: r for r in node.resources if isinstance(r.spec, PythonEnvironmentSpec)}


def look(engine: Engine, *, quick: bool = False) -> Seen:
    """Every build of every declared environment on the selected nodes; unless `quick` with its size, damage and users."""
    wanted = {n: declared(engine.desired.nodes[n]) for n in engine.names()}

    def work(node: str) -> Mapping[str, Fact[Builds]]:
        shared = {name: _spec(resource).shared for name, resource in wanted[node].items()}
        probes = tuple(fact.probe(name, sizes=not quick, judge=not quick, shared=of) for name, of in shared.items())
        found, _ = ask(engine.pool.channel(node), probes)
        return {name: fact.found(found, name) for name in shared}

    return engine.pool.each([n for n, names in wanted.items() if names], work)


def _spec(resource: Resource) -> PythonEnvironmentSpec:
    assert isinstance(resource.spec, PythonEnvironmentSpec)
    return resource.spec


@dataclass(frozen=True, slots=True)
class Target:
    """One node's environment and the build that its name shall lead to; None: builds are only collected, but those `spared`."""

    resource: Resource
    before: str | None
    build: str | None
    rejected: Mapping[str, str | float] | None = None
    spared: tuple[str, ...] = ()


def rollback(engine: Engine, name: str, to: str | None, by: str) -> dict[str, Target]:
    """What going back means on each selected node that has the environment and builds it. Raises Usage.

    `to`: a build; None: the newest whole one of another lock than the linked one's. What Git wants is then rejected, so that the
    next apply leaves it alone; a build of just that lock takes the rejection back.
    """
    targets = {}
    for node, resource, here in _own(engine, name):
        build = _chosen(here, node, name, to)
        digest = _spec(resource).digest
        wanted = here.builds[build].lock == digest
        rejected: dict[str, str | float] | None = None if wanted else {"lock": digest, "by": by, "at": round(time.time(), 3)}
        targets[node] = Target(resource, here.link.value if isinstance(here.link, Value) else None, build, rejected)
    return targets


def collection(engine: Engine, name: str) -> dict[str, Target]:
    """What cleaning up means on each selected node that has the environment and builds it. Raises Usage.

    Every node that sees a builder's folder is asked what it uses there, also one that is not selected: all or none.
    """
    return {
        node: Target(resource, None, None, spared=_needed_elsewhere(engine, node, resource))
        for node, resource, _ in _own(engine, name)
    }


def _needed_elsewhere(engine: Engine, builder: str, resource: Resource) -> tuple[str, ...]:
    name, names = resource.id.name, sharers(engine.desired).get(builder, {}).get(resource.id, ())

    def work(node: str) -> Fact[Builds]:
        found, _ = ask(engine.pool.channel(node), (fact.probe(name, judge=False, users=True, shared=True),))
        return fact.found(found, name)

    there = {node: _known("SharerUnknown", node, name, answer) for node, answer in engine.pool.each(names, work).items()}
    used = fact.used(map(Value, there.values()))
    if used is None:  # an answer without what was asked for
        raise Usage("SharerUnknown", node=", ".join(names), environment=name, inner="WrongShape", detail="users")
    return used


def _known(code: str, node: str, name: str, answer: Fact[Builds] | Failure) -> Builds:
    """What a node has. Raises Usage(code) where that is not known."""
    if isinstance(answer, Value):
        return answer.value
    if isinstance(answer, Failure):
        raise Usage(code, **{**answer.data, "node": node, "environment": name, "inner": answer.reason})
    inner, detail = (answer.why, answer.detail) if isinstance(answer, Unknown) else (answer.reason, "")
    raise Usage(code, node=node, environment=name, inner=inner, detail=detail)


def _own(engine: Engine, name: str) -> list[tuple[str, Resource, Builds]]:
    """Nodes that build the environment themselves, and what they have. Raises Usage where one cannot be read: all or none."""
    mine = {n: declared(engine.desired.nodes[n]) for n in engine.names()}
    if not any(name in of for of in mine.values()):
        names = sorted({other for of in mine.values() for other in of})
        raise Usage("EnvironmentNotDeclared", name=name, environments=names)
    builders = {_spec(of[name]).builder or node for node, of in mine.items() if name in of}
    if elsewhere := sorted(builders - set(mine)):
        raise Usage("NotTheBuilder", environment=name, builder=elsewhere[0])
    found = []
    for node, seen in look(engine, quick=True).items():
        resource = mine[node].get(name)
        if resource is None or node not in builders:
            continue
        found.append((node, resource, _known("EnvironmentUnknown", node, name, seen if isinstance(seen, Failure) else seen[name])))
    return found


def _chosen(here: Builds, node: str, name: str, to: str | None) -> str:
    whole = {b: about for b, about in here.builds.items() if about.sealed and about.damage is None}
    if to is not None:
        if to not in whole:
            raise Usage("NoSuchBuild", node=node, build=to, environment=name, builds=sorted(whole))
        return to
    linked = here.link.value if isinstance(here.link, Value) else ""
    fit = [(about.made or 0.0, b) for b, about in whole.items() if b[:12] != linked[:12]]
    if not fit:
        raise Usage("NoEarlierBuild", node=node, environment=name)
    return max(fit)[1]


def carry_out(
    engine: Engine, targets: Mapping[str, Target], keep: int | None, journal: Journal, holder: str, ttl: float
) -> Applied:
    """Switch or collect on all of these nodes, side by side."""
    nodes = {node: _node_plan(node, target, keep) for node, target in targets.items()}
    desired = engine.desired
    plan = Plan(
        id=uuid.uuid4().hex[:12],
        created=round(time.time(), 3),
        cluster=desired.cluster,
        revision=desired.revision,
        manifest_digest=desired.digest,
        tool_version=__version__,
        selection=engine.selection,
        nodes=nodes,
        waves=(Wave(tuple(nodes)),),
        cost=cost(nodes, {}),
    )

    def verify(node: str, channel: Channel, ids: tuple[ResourceId, ...]) -> tuple[Change, ...]:
        target, name = targets[node], ids[0].name
        found, _ = ask(channel, (fact.probe(name, judge=False, shared=_spec(target.resource).shared),))
        here = fact.found(found, name)
        link = here.value.link if isinstance(here, Value) else here
        return () if target.build is None or link == Value(target.build) else nodes[node].changes

    return engine.by_hand(plan, journal, holder, Stop(), verify, ttl)


def _node_plan(node: str, target: Target, keep: int | None) -> NodePlan:
    resource, spec = target.resource, _spec(target.resource)
    name, ids = resource.id.name, (resource.id,)
    if target.build is None:
        action = kind.collect(name, spec.keep if keep is None else keep, target.spared)
        # no resource is another after it: what is known of the environment stays known
        return NodePlan(node, (), (Step(1, "collect-environment", ids, action, kind.SWITCH_DEADLINE),))
    step = Step(1, "switch-environment", ids, kind.switch(name, target.build, target.rejected), kind.SWITCH_DEADLINE)
    fields = (FieldChange("build", target.before, target.build),)
    # never the declared spec's digest: what Git wants is not what the node has now
    digest = f"by-hand-{spec_digest(spec)}"
    change = Change(resource.id, Action.UPDATE, resource.origin, digest, Reason.GIT, fields, steps=(1,))
    return NodePlan(node, (change,), (step,))
