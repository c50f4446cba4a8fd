"""build_plan: desired and observed in, a total plan out; and the questions that have to be asked before."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from reconciler.kinds import KINDS
from reconciler.kinds.base import Draft, Verdict, spec_digest
from reconciler.model.desired import DesiredNode, DesiredState, Resource, ResourceId
from reconciler.model.fact import Facts, Probe
from reconciler.model.observed import Failure, Fields, Known, NodeState, ObservedState
from reconciler.model.plan import WRITING, Action, Change, HoldReason, NodePlan, Plan, Reason, Selection, Step
from reconciler.plan.cost import cost
from reconciler.plan.hold import held_change, held_node
from reconciler.plan.order import spare, waves
from reconciler.plan.scope import Scope, judge, probes_of, scope, unique
from reconciler.plan.shared import explained, others
from reconciler.plan.stale import digest_of


def follow_up(node: DesiredNode, facts: Facts, selection: Selection) -> tuple[Probe, ...]:
    """What else to ask a node, now that its first answers are there; empty when the plan can be made."""
    found = scope(node, facts, selection)
    if found.hold:
        return ()
    probes = [p for kind, todo in _groups(judge(found)) for p in KINDS[kind].follow_up(todo, found.context)]
    return unique(probes)


def _groups(judged: list[tuple[Resource, Verdict]]) -> list[tuple[str, list[tuple[Resource, Verdict]]]]:
    """What is to be written, in order, as runs of one kind and rank."""
    writing = [pair for pair in judged if pair[1].action in WRITING]
    runs = groupby(writing, key=lambda pair: (pair[0].id.kind, KINDS[pair[0].id.kind].rank(pair[0].spec)))
    return [(key[0], list(group)) for key, group in runs]


def build_plan(
    desired: DesiredState,
    observed: ObservedState,
    known: Known,
    *,
    plan_id: str,
    created: float,
    tool_version: str,
    selection: Selection,
) -> Plan:
    """The plan for every node in `observed`. Total: each declared resource that was selected appears on each node that answered."""
    room, seen = spare(desired, observed), others(desired, observed)

    def planned(name: str, state: NodeState | Failure) -> NodePlan:
        node = desired.nodes[name]
        return _permitted(node, _node_plan(node, state, known, selection, spare=room, seen=seen.get(name, {})))

    nodes = explained(desired, {name: planned(name, state) for name, state in observed.nodes.items()})
    return Plan(
        plan_id,
        created,
        desired.cluster,
        desired.revision,
        desired.digest,
        tool_version,
        selection,
        nodes,
        waves(desired, nodes),
        cost(nodes, known.durations),
    )


def _permitted(node: DesiredNode, plan: NodePlan) -> NodePlan:
    return held_node(plan, HoldReason("PolicyObserve")) if node.policy == "observe" else plan


def _node_plan(
    node: DesiredNode,
    state: NodeState | Failure,
    known: Known,
    selection: Selection,
    *,
    spare: bool,
    seen: Mapping[ResourceId, tuple[Facts | None, ...]],
) -> NodePlan:
    if isinstance(state, Failure):
        return NodePlan(node.name, failure=state)
    found = scope(node, state.facts, selection)
    found = replace(found, context=replace(found.context, spare=spare, others=seen))
    hold = HoldReason("StepRunning", {"steps": list(state.running)}) if state.running else found.hold
    if hold:
        changes = tuple(Change(r.id, Action.HOLD, r.origin, spec_digest(r.spec), hold=hold) for r in found.resources)
        return NodePlan(node.name, changes)
    withheld = known.withheld.get(node.name, {})
    judged = judge(found)
    ours = [(r, v) for r, v in judged if str(r.id) not in withheld]
    steps = _steps(ours, found)
    digests = {**state.inventory, **known.converged.get(node.name, {})}
    changes = tuple(held_change(_change(r, v, digests, steps), withheld.get(str(r.id))) for r, v in judged)
    observed: dict[str, Fields | None] = {str(r.id): v.observed for r, v in ours if v.action in WRITING}
    return NodePlan(node.name, changes, steps, observed, digest_of(observed))


def _steps(judged: list[tuple[Resource, Verdict]], found: Scope) -> tuple[Step, ...]:
    drafts: list[Draft] = []
    for kind, todo in _groups(judged):
        context = replace(found.context, files={str(f["path"]): b64decode(f["content"]) for d in drafts for f in _file(d)})
        drafts += KINDS[kind].steps(todo, context)
    return tuple(Step(i, d.title, d.resources, d.action, d.deadline) for i, d in enumerate(drafts, start=1))


def _file(draft: Draft) -> tuple[Mapping[str, Any], ...]:
    return (draft.action["file"],) if "file" in draft.action else ()


def _change(resource: Resource, verdict: Verdict, known: Mapping[str, str], steps: tuple[Step, ...]) -> Change:
    digest = spec_digest(resource.spec)
    reason = None
    if verdict.action in WRITING or any(field.moves for field in verdict.fields):  # the latter: known to differ, and held
        # it was like this once, and Git says the same still: so the node moved
        reason = Reason.DRIFT if known.get(str(resource.id)) == digest else Reason.GIT
    numbers = tuple(s.number for s in steps if resource.id in s.resources)
    return Change(resource.id, verdict.action, resource.origin, digest, reason, verdict.fields, verdict.hold, numbers, verdict.diff)


def verify_probes(node: DesiredNode, ids: tuple[ResourceId, ...]) -> tuple[Probe, ...]:
    """What to ask again after a step, to see whether these resources are as declared now."""
    return unique(probes_of(node, (r for r in node.resources if r.id in ids)))


def still_differing(node: DesiredNode, before: Facts, after: Facts, ids: tuple[ResourceId, ...]) -> tuple[Change, ...]:
    """Of `ids`, what is not as declared after a step: the only judge of success. `before` says the node's distribution."""
    facts = Facts({**{k: v for k, v in before.readings.items() if k == "os-release"}, **after.readings})
    found = scope(node, facts, Selection())
    mine = Scope(tuple(r for r in found.resources if r.id in ids), found.context)
    return tuple(_change(r, v, {}, ()) for r, v in judge(mine) if v.action is not Action.NONE)
