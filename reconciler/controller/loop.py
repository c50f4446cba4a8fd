"""The controller's loop: wakes, one turn at a time for the newest revision, conditions after each."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.apply.work import Stop
from reconciler.controller import assess, board, suspensions, verdicts
from reconciler.controller.conditions import Said, Status, Subject
from reconciler.controller.follower import Followed, Follower
from reconciler.controller.hub import Hub
from reconciler.controller.retry import Retry, spread
from reconciler.controller.turn import Turned, Turns
from reconciler.errors import LockHeld
from reconciler.events import Event, now
from reconciler.model.desired import DesiredState
from reconciler.model.outcome import End

LONGEST_WAIT = 30.0  # seconds: how late the end of a suspension is noticed


@dataclass
class Running:
    """A turn: its id, the revision that it is for, and how it ended (None: not yet)."""

    id: str
    commit: str | None
    exit: int | None = None
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Loop:
    """`turns` does the work, `follower` says what for. `run` is for one thread; all else may be called by any."""

    turns: Turns
    follower: Follower
    board: board.Board
    hub: Hub
    drift_interval: float
    chance: Callable[[], float] = random.random
    note: Callable[[str, Mapping[str, Any]], None] = lambda commit, state: None
    running: list[Running] = field(default_factory=list)
    poked: threading.Event = field(default_factory=threading.Event)
    _moved: threading.Condition = field(default_factory=threading.Condition)
    _saying: threading.Lock = field(default_factory=threading.Lock)
    _concluding: threading.Lock = field(default_factory=threading.Lock)
    _followed: Followed | None = None
    _wakes: list[str] = field(default_factory=list)
    _stop: Stop = field(default_factory=Stop)
    _ended: bool = False
    _retry: Retry = field(default_factory=Retry)
    _done: str | None = None  # the revision that the last turn was for

    def look(self) -> Followed:
        """Look at the repository now. A newer revision that can be used stops the apply of the one before between two steps."""
        followed = self.follower.look()
        with self._moved:
            before, self._followed = self._followed, followed
            newer = followed.commit is not None and (before is None or before.commit != followed.commit)
            if newer:
                self._wakes.append("revision")
                if self.running and self.running[-1].exit is None:
                    self._stop.set(End.PREEMPTED)
            self._moved.notify_all()
        if newer:
            self._await(followed)
            self._say_revision(followed.commit, "pending", "", {})
        if newer or before is None or before.refused != followed.refused or before.head.commit != followed.head.commit:
            self._conclude()
        return followed

    def _await(self, followed: Followed) -> None:
        """What a newer revision wants otherwise is not Ready before a turn for it is over."""
        desired = followed.target.desired if followed.target else None
        subjects = self.board.subjects()
        for name, node in desired.nodes.items() if desired else ():
            digest = verdicts.node_digest(node)
            if subjects.get(f"node/{name}", Subject()).digest != digest:
                said = Said("Ready", Status.UNKNOWN, "NotCarriedOut"), Said("Reconciling", Status.TRUE, "NotCarriedOut")
                self.board.put(f"node/{name}", digest, said)

    def poke(self) -> None:
        """Let the watch look at the repository at once; the answer is not waited for."""
        self.poked.set()

    def wake(self, reason: str) -> None:
        """Let a turn begin as soon as the one at work is over."""
        with self._moved:
            self._wakes.append(reason)
            self._moved.notify_all()

    def end(self) -> None:
        """No further turn; what is at work begins no further step."""
        with self._moved:
            self._ended = True
            self._stop.set(End.INTERRUPTED)
            self._moved.notify_all()

    @property
    def judged(self) -> bool:
        """Whether a turn of this process is over: its conditions are then of now."""
        return any(turn.exit is not None for turn in self.running)

    @property
    def ended(self) -> bool:
        return self._ended

    def run(self) -> None:
        """Until `end`. Raises what no turn can go on after: StateDamaged."""
        due = 0.0  # monotonic seconds: at the start at once
        while not self._ended:
            why, followed = self._next(due)
            if followed is None or self._ended:
                continue
            due = time.monotonic() + self._turn(why, followed)

    def _next(self, due: float) -> tuple[str, Followed | None]:
        """Wait for a wake, or until `due`; why the turn is made, and for what (None: nothing to do yet)."""
        with self._moved:
            left = due - time.monotonic()
            if not self._wakes and not self._ended and (left > 0 or self._followed is None):
                self._moved.wait(min(left if left > 0 else LONGEST_WAIT, LONGEST_WAIT))
            over = time.monotonic() >= due
            if self._ended or self._followed is None or not (self._wakes or over or self._suspension_over()):
                return "", None
            why, self._wakes = (self._wakes[0] if self._wakes else "interval"), []
            self._stop = Stop()
            self.running = [*self.running[-99:], Running(uuid.uuid4().hex[:12], self._followed.commit)]
            return why, self._followed

    def _suspension_over(self) -> bool:
        shown = {n.partition("/")[2] for n, s in self.board.subjects().items() if n.startswith("node/") and s.is_("Suspended")}
        if not shown:
            return False
        found = suspensions.suspended(tuple(self.turns.journal.records), self.turns.wall())
        return any(suspensions.of_node(found, name) is None for name in shown)

    def _turn(self, why: str, followed: Followed) -> float:
        """One turn; seconds until the next one is due by itself."""
        turn = self.running[-1]
        desired = followed.target.desired if followed.target else None
        self._publish(now("turn-started", commit=turn.commit, why=why))
        if turn.commit != self._done:
            self._retry, self._done = Retry(), turn.commit
        if desired is None:
            self.turns.pool.renew({})
            self.board.keep_only(())
            self._over(turn, 0 if followed.target else 1, followed.refused, followed.data or {})
            self._conclude()
            return spread(self.drift_interval, self.chance())
        try:
            turned = self.turns.run(desired, self._watch, self._stop)
        except KeyboardInterrupt:
            if not self._ended:
                self._say_revision(turn.commit, "superseded", "NewerRevision", {})
            self._over(turn, 2, "Preempted", {})
            return 0.0
        except LockHeld as e:
            self._retry = self._retry.failed()
            self._conclude((e.reason, dict(e.data)))
            self._over(turn, e.exit_code, e.reason, e.data)
            return self._retry.pause(self.chance())
        return self._turned(turn, desired, turned)

    def _turned(self, turn: Running, desired: DesiredState, turned: Turned) -> float:
        self._assess(desired, turned)
        if self._followed is not None and self._followed.commit != turn.commit:
            self._await(self._followed)
        plan, outcomes = turned.applied.plan, turned.applied.outcomes
        self._conclude()
        state, reason, data = verdicts.of_revision(plan, outcomes)
        self._say_revision(turn.commit, state, reason, data)
        self._over(turn, turned.applied.exit, "Preempted" if state == "superseded" else "", {"plan": plan.id, "state": state})
        if verdicts.again(outcomes.values()) and not self._stop:
            self._retry = self._retry.failed()
            return min(self._retry.pause(self.chance()), self.drift_interval)
        self._retry = Retry()
        return 0.0 if self._stop else spread(self.drift_interval, self.chance())

    def _assess(self, desired: DesiredState, turned: Turned) -> None:
        """Conditions of every node and stack."""
        plan, outcomes = turned.applied.plan, turned.applied.outcomes
        names = {f"node/{n}" for n in desired.nodes} | {f"stack/{n.stack}" for n in desired.nodes.values() if n.stack}
        self.board.keep_only(names)
        for name, node in plan.nodes.items():
            said = assess.of_node(node, outcomes.get(name), suspensions.of_node(turned.suspensions, name))
            self.board.put(f"node/{name}", verdicts.node_digest(desired.nodes[name]), said)
        subjects = self.board.subjects()
        for stack in sorted({n.stack for n in desired.nodes.values() if n.stack}):
            mine = {n.name: subjects[f"node/{n.name}"] for n in desired.nodes.values() if n.stack == stack}
            self.board.put(f"stack/{stack}", desired.digest[:16], assess.of_many(mine))

    def _conclude(self, stalled: verdicts.Why | None = None) -> None:
        """The cluster's conditions, on disk with all others: of the newest look, whichever turn it is that ends."""
        with self._concluding:
            followed = self._followed
            if followed is None:
                return
            nodes = {n.partition("/")[2]: s for n, s in self.board.subjects().items() if n.startswith("node/")}
            if stalled is None and followed.refused and not followed.transient:
                stalled = followed.refused, followed.data or {}
            reconciling = None
            if followed.refused and followed.transient:
                reconciling = "Retrying", {**(followed.data or {}), "inner": followed.refused}
            digest = followed.target.desired.digest[:16] if followed.target and followed.target.desired else None
            self.board.put(board.CLUSTER, digest, verdicts.of_cluster(nodes, stalled, reconciling))
            self.board.save()

    def _say_revision(self, commit: str | None, state: str, reason: str, data: Mapping[str, Any]) -> None:
        """What became of a revision, in the journal and in the history's notes, where that is news."""
        if commit is None:
            return
        with self._saying:
            mine = (r for r in reversed(self.turns.journal.records) if r["type"] == "revision" and r["commit"] == commit)
            last = next(mine, None)
            if last is None or (last["state"], last["reason"]) != (state, reason):
                self.turns.journal.append("revision", commit=commit, state=state, reason=reason, data=dict(data))
                self.note(commit, {"state": state, "reason": reason})
                self.hub.publish(now("revision", commit=commit, state=state, reason=reason, data=dict(data)))

    def _over(self, turn: Running, exit_code: int, reason: str, data: Mapping[str, Any]) -> None:
        turn.exit, turn.reason, turn.data = exit_code, reason, dict(data)
        self._publish(now("turn-ended", exit=exit_code, reason=reason, data=dict(data)))

    def _watch(self, event: Event) -> None:
        """An event of the apply; nodes that are worked on are Reconciling from here on."""
        if event.kind == "wave-started":
            for name in event.data["nodes"]:
                self.board.put(f"node/{name}", None, [Said("Reconciling", Status.TRUE, "Applying")])
        self._publish(event)

    def _publish(self, event: Event) -> None:
        self.hub.publish(event, self.running[-1].id if self.running else "")
