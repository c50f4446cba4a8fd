"""Waves of nodes, steps of a node: intent before, outcome after, and a second look that alone decides success."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reconciler.apply.adopt import UNFINISHED
from reconciler.apply.journal import Journal
from reconciler.apply.lease import DEADLINE, Leases
from reconciler.apply.reboot import AWAY, Return
from reconciler.apply.work import StepFailed, Stop, Work
from reconciler.errors import Garbled, LockHeld, NodeRefused, Unreachable
from reconciler.events import Emit, now
from reconciler.model.desired import ResourceId
from reconciler.model.observed import Failure
from reconciler.model.outcome import FAILURE_ENDS, End, NodeOutcome
from reconciler.model.plan import Action, Change, NodePlan, Plan, Step
from reconciler.pool import Pool
from reconciler.transport import program
from reconciler.transport.base import Channel

NOT_BEGUN = "not-begun"  # of a step that the node knows nothing of
WAIT = 5.0  # seconds of one wait request: how late an interruption is noticed while a unit runs

# (node, channel, resources) -> those of them that are not as declared now
Verify = Callable[[str, Channel, tuple[ResourceId, ...]], tuple[Change, ...]]

TOO_MANY = NodeOutcome(End.SKIPPED, reason="TooManyDown")


@dataclass(frozen=True)
class Executor:
    """Carries out one plan. `room`: how many nodes may be out of service beyond those that could not be observed."""

    plan: Plan
    pool: Pool
    journal: Journal
    leases: Leases
    verify: Verify
    emit: Emit
    stop: Stop
    without_lease: Mapping[str, Failure]
    room: int

    def run(self) -> dict[str, NodeOutcome]:
        """All waves. After a canary that did not converge, the nodes that are left are skipped."""
        outcomes: dict[str, NodeOutcome] = {}
        canary = ""
        for number, wave in enumerate(self.plan.waves, start=1):
            if canary or self.stop:
                outcomes |= {name: self._untouched(name, canary) for name in wave.nodes}
                continue
            self.emit(now("wave-started", wave=number, nodes=list(wave.nodes), canary=wave.canary))
            full = self._full(outcomes)
            outcomes |= {name: self._finish(name, TOO_MANY) for name in wave.nodes if full and restarts(self.plan.nodes[name])}
            ready = [name for name in wave.nodes if name not in self.without_lease and name not in outcomes]
            ends = {**self.pool.each(ready, self._node), **{n: f for n, f in self.without_lease.items() if n in wave.nodes}}
            for name, ended in ends.items():
                outcomes[name] = self._broken(name, ended, lost=name in ready) if isinstance(ended, Failure) else ended
            if wave.canary:
                canary = next((n for n in wave.nodes if outcomes[n].end is not End.CONVERGED), "")
        self._release_untouched()
        return outcomes

    def _full(self, outcomes: Mapping[str, NodeOutcome]) -> bool:
        """Whether as many nodes as may be are out of service: those that were lost on the way."""
        return sum(1 for outcome in outcomes.values() if outcome.end is End.LOST) >= self.room

    def _release_untouched(self) -> None:
        """Nodes that were skipped never had a worker to give their lease back; after another took over, nothing is said."""
        held = [] if self.stop.end is End.SUPERSEDED else self.leases.held()
        self.pool.each(held, lambda name: self.leases.give_back(name, self.pool.channel(name)))

    def _untouched(self, name: str, canary: str) -> NodeOutcome:
        if self.stop:
            return self._finish(name, NodeOutcome(self.stop.end))
        return self._finish(name, NodeOutcome(End.SKIPPED, reason="CanaryFailed", data={"canary": canary}))

    def _broken(self, name: str, failure: Failure, *, lost: bool) -> NodeOutcome:
        self.leases.abandon(name)
        end = End.LOST if lost and failure.kind == "unreachable" else FAILURE_ENDS[failure.kind]
        return self._finish(name, NodeOutcome(end, reason=failure.reason, data=failure.data))

    def _finish(self, name: str, outcome: NodeOutcome) -> NodeOutcome:
        about = {"end": outcome.end.value, "reason": outcome.reason, "changed": outcome.changed}
        self.journal.append("node-finished", node=name, plan=self.plan.id, **about, data=dict(outcome.data))
        self.emit(now("node-finished", name, **about, data=dict(outcome.data)))
        return outcome

    def _node(self, name: str) -> NodeOutcome:
        """One node's steps in order; it stops at its first failure."""
        node = self.plan.nodes[name]
        work = Work(name, node, self.pool.channel(name), self.leases.token(name))
        outcome = NodeOutcome(End.CONVERGED)
        for step in node.steps:
            if self.stop:
                outcome = NodeOutcome(self.stop.end)
                break
            try:
                self._step(work, step)
            except StepFailed as e:
                outcome = NodeOutcome(self._end_of(e), reason=e.reason, data=e.data)
                break
        changed = len(work.verified())
        outcome = self._settle(work, outcome)
        return self._finish(name, NodeOutcome(outcome.end, changed, len(node.held()), outcome.reason, outcome.data))

    def _end_of(self, failed: StepFailed) -> End:
        if failed.reason == "StaleToken":
            self.stop.set(End.SUPERSEDED)
            return End.SUPERSEDED
        if failed.reason == "DidNotReturn":
            return End.LOST
        return self.stop.end if failed.reason in ("Interrupted", "RebootWaitEnded") else End.FAILED

    def _step(self, work: Work, step: Step) -> None:
        """Intent, action, outcome, and the second look. Raises StepFailed; Unreachable and Garbled pass through."""
        resources = [str(r) for r in step.resources]
        about = {"node": work.name, "plan": self.plan.id, "token": work.token, "step": step.number, "title": step.title}
        self.journal.append("intent", **about, resources=resources)
        self.emit(now("step-started", work.name, step=step.number, title=step.title, resources=resources))
        began = time.monotonic()
        record = self._reboot(work, step) if "reboot" in step.action else self._carry_out(work, step)
        seconds = round(time.monotonic() - began, 3)
        self.journal.append("outcome", **about, state=record["state"], seconds=seconds)
        completed = tuple(c.id for c in work.completed_by(step)) if record["state"] == "done" else ()
        differing = self.verify(work.name, work.channel, completed) if completed else ()
        self.journal.append("verified", **about, differing=[str(c.id) for c in differing])
        ok = record["state"] == "done" and not differing
        told = {"ok": ok, "seconds": seconds, "resources": resources, "warnings": _warnings(record)}
        self.emit(now("step-finished", work.name, step=step.number, title=step.title, **told))
        if not ok:
            raise self._failed(step, record, differing)
        work.done.append(step)

    def _carry_out(self, work: Work, step: Step) -> Mapping[str, Any]:
        """Begin the step and follow it to its end, its deadline, or the wish to stop (its state is `started` then)."""
        try:
            record = _checked(self._begin(work, step))
            work.begun.append((work.token, step.number))
            until = time.monotonic() + step.deadline
            while record["state"] in UNFINISHED and time.monotonic() < until and not self.stop:
                asked = {"token": work.token, "step": step.number, "seconds": WAIT}
                record = _checked(work.channel.request("wait", WAIT + DEADLINE, **asked))
        except NodeRefused as e:
            return {"state": "refused", "error": e.reason, "data": dict(e.data)}
        return record

    def _reboot(self, work: Work, step: Step) -> Mapping[str, Any]:
        """Let the node restart, wait for it and take it over anew. Raises StepFailed where it is not fit, or stays away."""
        left = set(step.action["reboot"]["left"])
        differing = self.verify(work.name, work.channel, step.resources)
        if any(change.hold or {f.path for f in change.fields if f.moves} - left for change in differing):
            raise StepFailed("NotFitToRestart", step=step.title, still=[_still(change) for change in differing])
        token = work.token

        def over(channel: Channel) -> bool:
            """Whether the request was lost before the node had it, or the node could not do it."""
            return _seen(channel, token, step)["state"] not in UNFINISHED

        again = Return(work.name, work.channel.hello.boot_id, self.pool, self.stop, step.deadline, time.monotonic(), over)
        with suppress(Unreachable):  # it went down while we asked, or before it could answer; or it was never asked
            record = self._carry_out(work, step)
            if record["state"] not in UNFINISHED or self.stop:
                return record
        self.leases.abandon(work.name)
        work.channel = again.wait()
        try:
            work.token = self.leases.take(work.name, work.channel, self.plan.id)
        except LockHeld as e:
            raise StepFailed("StaleToken", **e.data) from None
        record = _seen(work.channel, token, step)  # under a lease of its own: the older request can begin nothing any more
        if record["state"] == NOT_BEGUN:
            raise StepFailed("RestartNotBegun", step=step.title)
        work.begun.append((token, step.number))
        return record

    def _begin(self, work: Work, step: Step) -> Mapping[str, Any]:
        about = {"plan": self.plan.id, "commit": self.plan.revision.commit}
        request = {
            "step": step.number,
            "plan": self.plan.id,
            "title": step.title,
            "resources": [str(r) for r in step.resources],
            "action": step.action,
            "inventory": {
                str(c.id): {"spec": c.spec_digest, "created": c.action is Action.CREATE, **about} for c in work.completed_by(step)
            },
        }
        if needed := [name for command in step.action.get("commands", ()) for name in command.get("needs", ())]:
            request["fragments"] = {name: program.fragment(name) for name in needed}
        return self._write(work, "begin", **request)

    def _write(self, work: Work, op: str, **fields: Any) -> Mapping[str, Any]:
        """A request that needs the lease. Raises NodeRefused, Unreachable or Garbled."""
        try:
            return work.channel.request(op, 2 * DEADLINE, token=work.token, **fields)
        except NodeRefused as e:
            if e.reason != "LeaseExpired":
                raise
        # this controller slept; the lease is still its own if nobody was given one since
        work.channel.request("renew", DEADLINE, token=work.token)
        return work.channel.request(op, 2 * DEADLINE, token=work.token, **fields)

    def _settle(self, work: Work, outcome: NodeOutcome) -> NodeOutcome:
        """Tell the node that its outcomes are known, and give the lease back. A step that still runs stays for the next apply."""
        if verified := work.verified():
            specs = {str(c.id): c.spec_digest for c in verified}
            self.journal.append("converged", node=work.name, plan=self.plan.id, resources=specs)
        if outcome.reason in ("StaleToken", *AWAY):
            self.leases.abandon(work.name)
            return outcome
        try:
            if outcome.reason not in ("Interrupted", "StillRunning"):
                self._write(work, "settle", steps=[list(pair) for pair in dict.fromkeys(work.begun)])
            self.leases.give_back(work.name, work.channel)
        except NodeRefused as e:
            if e.reason != "StaleToken":
                raise
            self.leases.abandon(work.name)
            self.stop.set(End.SUPERSEDED)
            return NodeOutcome(End.SUPERSEDED, reason=e.reason, data=dict(e.data))
        return outcome

    def _failed(self, step: Step, record: Mapping[str, Any], differing: tuple[Change, ...]) -> StepFailed:
        """Why a step did not do what it should: the node's refusal, the command's own words, or what still differs."""
        if record["state"] in UNFINISHED:
            return StepFailed("Interrupted" if self.stop else "StillRunning", step=step.title, deadline=step.deadline)
        if record["state"] == "refused":
            return StepFailed(record["error"], **{**_foreign(record["data"]), "step": step.title})
        about = {
            "step": step.title,
            "state": record["state"],
            "error": record.get("error", ""),
            "still": [_still(c) for c in differing],
        }
        told = {**_foreign(record.get("data")), **({"detail": record["detail"]} if record.get("detail") else {})}
        reason = "StillDiffers" if record["state"] == "done" else "StepFailed"
        return StepFailed(reason, **{**told, **about, **_command(record)})


def restarts(node: NodePlan) -> bool:
    """Whether this plan takes the node out of service for a while."""
    return any("reboot" in step.action for step in node.steps)


def _still(change: Change) -> dict[str, Any]:
    """What differs after a step, or why that cannot be said."""
    hold = {"hold": {"code": change.hold.code, "data": dict(change.hold.data)}} if change.hold else {}
    return {"resource": str(change.id), "fields": [[f.path, f.before, f.after] for f in change.fields if f.moves], **hold}


def _foreign(data: Any) -> dict[str, Any]:
    """What a node says of its refusal, without the names that we give a meaning of our own."""
    ours = ("step", "state", "error", "still", "argv", "status", "output")
    return {k: v for k, v in data.items() if k not in ours} if isinstance(data, Mapping) else {}


def _seen(channel: Channel, token: int, step: Step) -> Mapping[str, Any]:
    """The record of a step as it is now; its state is NOT_BEGUN where the node knows of none. Raises Garbled, Unreachable."""
    try:
        return _checked(channel.request("wait", WAIT + DEADLINE, token=token, step=step.number, seconds=0))
    except NodeRefused as e:
        if e.reason != "NoSuchStep":
            raise
        return {"state": NOT_BEGUN}


def _checked(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step's record as the node program writes it. Raises Garbled."""
    lists = [record.get(name, []) for name in ("results", "commands")]
    shaped = all(isinstance(found, list) and all(isinstance(item, Mapping) for item in found) for found in lists)
    if not isinstance(record.get("state"), str) or not shaped:
        raise Garbled("WrongShape", detail="step record")
    return record


def _warnings(record: Mapping[str, Any]) -> list[str]:
    """What rpm says of scriptlets that failed: all but %pre and %preun count as success to it, and the package is there."""
    said = [line for result in record.get("results", []) for line in f"{result.get('out')}\n{result.get('err')}".splitlines()]
    return list(dict.fromkeys(line.strip() for line in said if "scriptlet" in line))


def _command(record: Mapping[str, Any]) -> dict[str, Any]:
    """The last command that ran in a step, and the end of what it said."""
    results, commands = record.get("results", []), record.get("commands", [])
    if not results or len(commands) < len(results):
        return {}
    last, argv = results[-1], commands[len(results) - 1].get("argv")
    return {
        "argv": argv if isinstance(argv, list) else [],
        "status": last.get("status"),
        # both: apt says what is the matter on stdout, and only that something is on stderr
        "output": "\n".join(said for name in ("out", "err") if (said := str(last.get(name) or "").strip()))[-2000:],
    }
