"""One turn: look at all nodes, compare, and close the difference where policy, suspensions and approvals let it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.apply.history import History
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.apply.work import Stop
from reconciler.controller.approvals import Approvals, Pending, still_fits, waiting
from reconciler.controller.flapping import flapping, healed
from reconciler.controller.suspensions import Suspension, of_node, suspended
from reconciler.engine import Applied, Engine, Limits
from reconciler.errors import StalePlan
from reconciler.events import Emit, now
from reconciler.model.desired import DesiredState
from reconciler.model.observed import Known
from reconciler.model.plan import HoldReason, Plan, Selection
from reconciler.plan.hold import hold_back
from reconciler.plan.stale import covered
from reconciler.pool import Pool
from reconciler.snapshots import take

QUIET = 3600.0  # seconds within which a turn that finds nothing is not recorded again
AsPlan = Callable[[Plan, str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Turned:
    """What a turn came to. `approved`: of a plan that a person approved, carried out before."""

    applied: Applied
    suspensions: Mapping[str, Suspension]
    pending: Pending | None
    approved: Applied | None = None


@dataclass(frozen=True)
class Turns:
    """What all turns share. `as_plan` makes the JSON of a plan, which is kept while it waits for approval."""

    state: StateDir
    journal: Journal
    holder: str
    pool: Pool
    approvals: Approvals
    as_plan: AsPlan
    source: str
    ttl: float
    wall: Callable[[], float]

    def run(self, desired: DesiredState, emit: Emit, stop: Stop) -> Turned:
        """Raises LockHeld (another controller), StateDamaged, or KeyboardInterrupt (stopped before anything was planned)."""
        suspensions = suspended(tuple(self.journal.records), self.wall())
        self.pool.renew(desired.nodes)
        approved = self._approved(desired, suspensions, emit, stop)
        withheld = flapping(tuple(self.journal.records), desired.revision.commit)
        limits = Limits(withheld, lambda plan, known: self._narrow(plan, known, desired, suspensions, emit), QUIET)
        engine = Engine(desired, self.pool, Selection(), emit)
        applied = engine.apply(self.journal, self.holder, None, stop, self.ttl, limits)
        self._after(engine, applied)
        return Turned(applied, suspensions, self.approvals.pending(), approved)

    def _narrow(self, plan: Plan, known: Known, desired: DesiredState, suspensions: Mapping[str, Suspension], emit: Emit) -> Plan:
        """The plan without what must not be done now: suspended nodes, and those that wait for approval."""
        out = {name: of_node(suspensions, name) for name in plan.nodes}
        plan = hold_back(plan, desired, known, {n: HoldReason("NodeSuspended", s.data) for n, s in out.items() if s})
        asked = waiting(plan, desired.rollout.approve)
        if not asked:
            self._drop("NothingLeft", emit)
            return plan
        pending = self._pending(plan, asked, emit)
        kinds = {name: HoldReason("WaitingForApproval", {"plan": pending.id, "kinds": list(of)}) for name, of in asked.items()}
        return hold_back(plan, desired, known, kinds)

    def _pending(self, plan: Plan, asked: Mapping[str, tuple[str, ...]], emit: Emit) -> Pending:
        """The plan that waits: the one of before where it still fits."""
        before = self.approvals.pending()
        if before and still_fits(before.plan, plan, asked):
            return before
        self._drop("Moved", emit)
        alone = replace(plan, id=uuid.uuid4().hex[:12], nodes={n: plan.nodes[n] for n in asked}, selection=Selection(tuple(asked)))
        pending = Pending(self.as_plan(alone, self.source))
        self.approvals.keep(pending)
        self.journal.append("approval-asked", plan=pending.id, commit=plan.revision.commit, nodes=sorted(asked))
        emit(now("approval-asked", plan=pending.id, nodes=sorted(asked)))
        return pending

    def _drop(self, reason: str, emit: Emit) -> None:
        """Let no plan wait any more. That one which a person approved (maybe while this turn looked) is not carried out is said."""
        pending = self.approvals.pending()
        if pending and pending.by:
            self.journal.append("approval-stale", plan=pending.id, reason=reason)
            emit(now("approval-stale", plan=pending.id, reason=reason))
        self.approvals.clear()

    def _approved(self, desired: DesiredState, suspensions: Mapping[str, Suspension], emit: Emit, stop: Stop) -> Applied | None:
        """Carry out the plan that a person approved, exactly as it was shown; where it does not fit any more it is dropped."""
        pending = self.approvals.pending()
        if pending is None or not pending.by or any(of_node(suspensions, name) for name in covered(pending.plan)):
            return None
        if not set(covered(pending.plan)) <= set(desired.nodes):
            self._drop("NodeGone", emit)
            return None
        engine = Engine(desired, self.pool, Selection(covered(pending.plan)), emit)
        try:
            applied = engine.apply(self.journal, self.holder, pending.plan, stop, self.ttl)
        except StalePlan as e:
            self._drop(e.reason, emit)
            return None
        self.approvals.clear()
        self._after(engine, applied)
        return applied

    def _after(self, engine: Engine, applied: Applied) -> None:
        """What was healed, for the eye on flapping; what the changed nodes look like now, for the history."""
        carried = {
            r["node"]: r["resources"] for r in self.journal.records if r["type"] == "converged" and r["plan"] == applied.plan.id
        }
        for name, node in applied.plan.nodes.items():
            found = {resource: fields for resource, fields in healed(node).items() if resource in carried.get(name, {})}
            if found:
                about = {"plan": applied.plan.id, "commit": applied.plan.revision.commit}
                self.journal.append("healed", node=name, **about, resources=found)
        changed = [name for name, outcome in applied.outcomes.items() if outcome.changed]
        if changed:
            take(engine, History(self.state.history), changed, f"apply {applied.plan.id}", asked=False)
