"""The main job, put together: desired state and nodes in, a plan or an apply out. Everything else is done elsewhere."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler import __version__, status
from reconciler.apply.adopt import adopt, pending, recall
from reconciler.apply.executor import Executor, Verify, restarts
from reconciler.apply.journal import Journal
from reconciler.apply.lease import DEADLINE, TTL, Leases
from reconciler.apply.work import Stop
from reconciler.errors import LockHeld, StalePlan
from reconciler.events import Emit, now
from reconciler.model.desired import DesiredState, ResourceId
from reconciler.model.fact import Facts, Probe
from reconciler.model.observed import Failure, Known, NodeState, ObservedState
from reconciler.model.outcome import FAILURE_ENDS, End, NodeOutcome, exit_code
from reconciler.model.plan import Action, Change, HoldReason, Plan, Selection
from reconciler.observe import ask, observe
from reconciler.plan.build import build_plan, follow_up, still_differing, verify_probes
from reconciler.plan.order import allowed
from reconciler.plan.scope import first_probes
from reconciler.plan.shared import waiting
from reconciler.plan.stale import moved
from reconciler.pool import Pool
from reconciler.transport.base import Channel


@dataclass(frozen=True)
class Applied:
    """What came of an apply: the plan that was made last, each node's end, the exit status."""

    plan: Plan
    outcomes: Mapping[str, NodeOutcome]
    exit: int


@dataclass(frozen=True)
class Limits:
    """What a controller leaves alone although it differs: resources by node, and what `narrow` makes of a plan.

    `quiet`: seconds within which the same plan without a change is not recorded again: a loop must not fill the journal.
    """

    withheld: Mapping[str, Mapping[str, HoldReason]] = field(default_factory=dict)
    narrow: Callable[[Plan, Known], Plan] = lambda plan, known: plan
    quiet: float = 0.0


@dataclass(frozen=True)
class Engine:
    """One cluster, as one revision declares it, over one pool of channels."""

    desired: DesiredState
    pool: Pool
    selection: Selection
    emit: Emit

    def names(self) -> tuple[str, ...]:
        """The selected nodes, in the order of the manifest."""
        return tuple(n for n in self.desired.nodes if not self.selection.nodes or n in self.selection.nodes)

    def observe(self) -> dict[str, NodeState | Failure]:
        """Ask every selected node what its plan needs."""
        first = {name: first_probes(self.desired.nodes[name], self.selection) for name in self.names()}
        self.emit(now("observing", nodes=list(first)))

        def more(name: str, facts: Facts) -> tuple[Probe, ...]:
            return follow_up(self.desired.nodes[name], facts, self.selection)

        return observe(self.pool, first, more, lambda name: self.emit(now("observed", name)))

    def plan(self, known: Known) -> Plan:
        """Look at the nodes and say what would have to happen. Writes nothing anywhere."""
        return self._build(self.observe(), known, uuid.uuid4().hex[:12])

    def _build(self, observed: Mapping[str, NodeState | Failure], known: Known, plan_id: str) -> Plan:
        return build_plan(
            self.desired,
            ObservedState(observed),
            known,
            plan_id=plan_id,
            created=round(time.time(), 3),
            tool_version=__version__,
            selection=self.selection,
        )

    def apply(
        self,
        journal: Journal,
        holder: str,
        saved: Mapping[str, Any] | None,
        stop: Stop,
        ttl: float = TTL,
        limits: Limits | None = None,
    ) -> Applied:
        """Take over what earlier applies left behind, plan afresh, and close the difference.

        `saved`: a plan file's content, which must still fit. Raises StalePlan, LockHeld or KeyboardInterrupt (while it waited for
        steps of before), all before anything is written.
        """
        limits = limits or Limits()
        if saved is not None and saved["id"] in status.used_plans(journal.records):
            raise StalePlan("AlreadyUsed", plan=saved["id"])
        with Leases(holder, journal, self.emit, ttl) as leases:
            unsettled = self._take_over(journal, leases, holder, stop)
            if stop:
                raise KeyboardInterrupt  # before anything was planned
            known = replace(status.known(journal.records), withheld=limits.withheld)
            observed = {**self.observe(), **unsettled}
            plan = limits.narrow(self._build(observed, known, saved["id"] if saved else uuid.uuid4().hex[:12]), known)
            if saved is not None and (differing := moved(saved, plan)):
                raise StalePlan("Moved", plan=saved["id"], moved=differing)
            self.emit(now("planned", plan=plan))
            record_plan(journal, plan, limits.quiet)
            outcomes = self._carry_out(plan, observed, journal, leases, stop, saved is not None)
        self._remember(plan, known, journal)
        return Applied(plan, outcomes, exit_code(outcomes.values()))

    def _take_over(self, journal: Journal, leases: Leases, holder: str, stop: Stop) -> dict[str, Failure]:
        """Before anything is planned: nobody else may be at work, and what our own past left running is waited for.

        The nodes whose past could not be settled: nothing is done there, or an older outcome would be taken over after a newer one.
        """

        def look(name: str) -> bool:
            remembered = recall(self.pool.channel(name))
            lease = remembered.get("lease") or {}
            if lease.get("live") and lease.get("holder") != holder:
                raise LockHeld("OtherController", node=name, **{k: lease.get(k) for k in ("holder", "age", "ttl", "plan")})
            if pending(remembered):
                return True
            if lease.get("holder") == holder and lease.get("age") is not None:
                # an earlier apply from this state directory died with nothing left to do here but this
                self.pool.channel(name).request("release", DEADLINE, token=lease.get("token"))
            return False

        looked = self.pool.each(self.names(), look)
        waiting = [name for name, found in looked.items() if found is True]
        adopted = self.pool.each(waiting, lambda name: adopt(name, self.pool, journal, leases, self.emit, stop))
        return {name: why for name, why in {**looked, **adopted}.items() if isinstance(why, Failure)}

    def _carry_out(
        self,
        plan: Plan,
        observed: Mapping[str, NodeState | Failure],
        journal: Journal,
        leases: Leases,
        stop: Stop,
        saved: bool,
    ) -> dict[str, NodeOutcome]:
        """Every node's outcome. An empty plan takes no lease and writes nothing on any node."""
        outcomes = {name: _without_steps(plan, name) for name, node in plan.nodes.items() if not node.steps}
        if not plan.waves and not saved:
            return outcomes

        def verify(name: str, channel: Channel, ids: tuple[ResourceId, ...]) -> tuple[Change, ...]:
            node, before = self.desired.nodes[name], observed[name]
            after, _ = ask(channel, verify_probes(node, ids))
            return still_differing(node, before.facts if isinstance(before, NodeState) else Facts(), after, ids)

        return self._execute(plan, journal, leases, stop, verify, outcomes, saved)

    def _execute(
        self,
        plan: Plan,
        journal: Journal,
        leases: Leases,
        stop: Stop,
        verify: Verify,
        outcomes: dict[str, NodeOutcome],
        saved: bool = False,
    ) -> dict[str, NodeOutcome]:
        """The plan's waves, between two records of the journal; `outcomes` are those of nodes that it does not touch."""
        about = {"plan": plan.id, "cluster": plan.cluster, "commit": plan.revision.commit}
        journal.append("apply-started", **about, saved=saved)
        without = self._take_leases([name for wave in plan.waves for name in wave.nodes], plan, leases)
        outcomes |= Executor(plan, self.pool, journal, leases, verify, self.emit, stop, without, self._room(plan)).run()
        outcomes |= self._look_again(plan, outcomes, journal, verify)
        journal.append("apply-finished", plan=plan.id, exit=exit_code(outcomes.values()))
        return outcomes

    def _look_again(
        self, plan: Plan, outcomes: Mapping[str, NodeOutcome], journal: Journal, verify: Verify
    ) -> dict[str, NodeOutcome]:
        """What was held until another node had made it, now that that one converged: outcomes of the nodes that see it now."""
        done = {name for name, ended in outcomes.items() if ended.end is End.CONVERGED}
        waited = waiting(self.desired, plan.nodes, done)
        left = self.pool.each(waited, lambda name: len(verify(name, self.pool.channel(name), waited[name])))
        seen = {name: len(waited[name]) - n for name, n in left.items() if isinstance(n, int) and n < len(waited[name])}
        found = {name: replace(outcomes[name], held=outcomes[name].held - n) for name, n in seen.items()}
        if fine := {name: {"changes": 0, "held": o.held} for name, o in found.items() if o.end.value in status.GOOD}:
            journal.append("planned", plan=plan.id, cluster=plan.cluster, commit=plan.revision.commit, nodes=fine)
        return found

    def _room(self, plan: Plan) -> int:
        """How many more nodes may go out of service; before a restart those count too that this call does not look at otherwise."""
        down = sum(1 for node in plan.nodes.values() if node.failure)
        if any(restarts(node) for node in plan.nodes.values()):
            others = self.pool.each([name for name in self.desired.nodes if name not in plan.nodes], self.pool.channel)
            down += sum(1 for found in others.values() if isinstance(found, Failure))
        return allowed(self.desired.rollout.max_unavailable, len(self.desired.nodes)) - down

    def by_hand(self, plan: Plan, journal: Journal, holder: str, stop: Stop, verify: Verify, ttl: float = TTL) -> Applied:
        """Carry out what a person asked for and no manifest says, with the same leases, records and second look as an apply.

        Raises LockHeld, or KeyboardInterrupt while it waited for steps of before.
        """
        with Leases(holder, journal, self.emit, ttl) as leases:
            self._take_over(journal, leases, holder, stop)
            if stop:
                raise KeyboardInterrupt
            outcomes = self._execute(plan, journal, leases, stop, verify, {})
        return Applied(plan, outcomes, exit_code(outcomes.values()))

    def _take_leases(self, names: list[str], plan: Plan, leases: Leases) -> dict[str, Failure]:
        """A lease on every node that will be written, before the first write on any; which nodes refused one.

        Raises LockHeld when another controller has one of them: then none is kept.
        """
        try:
            taken = self.pool.each(names, lambda name: leases.take(name, self.pool.channel(name), plan.id))
        except LockHeld:
            self.pool.each(leases.held(), lambda name: leases.give_back(name, self.pool.channel(name)))
            raise
        return {name: why for name, why in taken.items() if isinstance(why, Failure)}

    def _remember(self, plan: Plan, known: Known, journal: Journal) -> None:
        """Specs that were found as declared: a later difference is then drift, also where we never had to change anything."""
        for name, node in plan.nodes.items():
            fine = {str(c.id): c.spec_digest for c in node.changes if c.action is Action.NONE}
            news = {k: v for k, v in fine.items() if known.converged.get(name, {}).get(k) != v}
            if news:
                journal.append("converged", node=name, plan=plan.id, resources=news)


def record_plan(journal: Journal, plan: Plan, quiet: float = 0.0) -> None:
    """For `status`: what was planned for each node, and when; within `quiet` seconds nothing to do is said once."""
    counts = {
        name: {"failure": node.failure.reason} if node.failure else {"changes": len(node.writes()), "held": len(node.held())}
        for name, node in plan.nodes.items()
    }
    about = {"cluster": plan.cluster, "commit": plan.revision.commit, "nodes": counts}
    if plan.changes or not status.said_before(journal.records, about, time.time() - quiet):
        journal.append("planned", plan=plan.id, **about)


def _failed(failure: Failure) -> NodeOutcome:
    return NodeOutcome(FAILURE_ENDS[failure.kind], reason=failure.reason, data=failure.data)


def _without_steps(plan: Plan, name: str) -> NodeOutcome:
    node = plan.nodes[name]
    return _failed(node.failure) if node.failure else NodeOutcome(End.UNCHANGED, held=len(node.held()))
