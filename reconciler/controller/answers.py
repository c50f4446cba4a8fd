"""What the controller answers on its socket, by op. Each answer is a stream of messages with the end last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.controller.approvals import what_waits
from reconciler.controller.conditions import TYPES, Status
from reconciler.controller.loop import Loop, Running
from reconciler.controller.protocol import Message, Request, end, event
from reconciler.errors import ReconcileError
from reconciler.model.words import nearest

DETACH = 60.0  # seconds after which a pusher is let go
BEAT = 1.0  # seconds between two looks whether a client is still there
There = Callable[[], bool]


@dataclass(frozen=True)
class Answers:
    """One loop, as its clients see it."""

    loop: Loop

    def __call__(self, request: Request, account: str, there: There) -> Iterator[Message]:
        by = request.fields.get("by") or account
        fields = {**request.fields, "by": f"{by} ({account})" if by != account else account}
        try:
            yield from getattr(self, f"_{request.op}")(fields, there)
        except ReconcileError as e:
            yield end(e.exit_code, e.reason, **e.data)
        except Exception as e:  # noqa: BLE001 one client's question must not be the end of its answer
            yield end(1, "Internal", detail=f"{type(e).__name__}: {e}")

    # ---- what goes on

    def _push(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """The plan and the apply of the revision that covers what was pushed."""
        repository = self.loop.follower.repository
        if fields["ref"] != repository.ref:
            yield end(0, "OtherRef", ref=fields["ref"], followed=repository.ref)
            return
        if not repository.remote and Path(fields["repository"]).resolve() != repository.path.resolve():
            yield end(0, "OtherRepository", repository=fields["repository"], followed=repository.source)
            return
        until = time.monotonic() + float(fields.get("detach_s") or DETACH)
        new, number = str(fields["new"]), self.loop.hub.last
        followed = self.loop.look()
        if followed.refused and followed.head.commit == new != followed.commit:
            yield end(1, followed.refused, **(followed.data or {}))
            return
        while (turn := self._covering(new)) is None:
            if time.monotonic() > until or not there():
                yield end(0, "Detached", id=new)
                return
            self.loop.hub.wait(number, BEAT)
            number = self.loop.hub.last
        yield from self._stream(turn, until, there)

    def _covering(self, new: str) -> Running | None:
        """The turn that is for `new`, or the newest one, where its revision came after it: pushes coalesce."""
        turns = self.loop.running
        exact = next((turn for turn in reversed(turns) if turn.commit == new), None)
        if exact or not turns or turns[-1].commit is None:
            return exact
        return turns[-1] if self.loop.follower.repository.contains(turns[-1].commit, new) else None

    def _follow(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """A turn by its id, or the newest one of a revision."""
        wanted = str(fields["id"])
        found = [t for t in self.loop.running if t.id == wanted or (len(wanted) > 6 and (t.commit or "").startswith(wanted))]
        if not found:
            yield end(1, "NoSuchTurn", name=wanted)
            return
        yield from self._stream(found[-1], None, there)

    def _stream(self, turn: Running, until: float | None, there: There) -> Iterator[Message]:
        """The messages of one turn from its beginning, until it is over, or `until` (monotonic seconds)."""
        number = 0
        while True:
            over = turn.exit is not None
            for message in self.loop.hub.after(number):
                number = message["seq"]
                if message.get("turn") == turn.id:
                    yield event(message)
            if over:
                yield end(turn.exit or 0, turn.reason, **{**turn.data, "id": turn.id, "commit": turn.commit})
                return
            if (until is not None and time.monotonic() > until) or not there():
                yield end(0, "Detached", id=turn.id)
                return
            self.loop.hub.wait(number, BEAT)

    def _events(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        number = int(fields.get("since") or 0)
        while True:
            for message in self.loop.hub.after(number):
                number = message["seq"]
                yield event(message)
            if not fields.get("follow") or not there():
                yield end(0, "", last=number)
                return
            self.loop.hub.wait(number, BEAT)

    # ---- how it is

    def _status(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """One message a subject, so that a large cluster fits."""
        found = self.loop.board.as_data()
        for name, subject in found["subjects"].items():
            yield event({"event": "subject", "subject": name, **subject})
        running, pending = self.loop.running, self.loop.turns.approvals.pending()
        turn, repository = running[-1] if running else None, self.loop.follower.repository
        about: dict[str, Any] = {"asOf": found["asOf"], "repository": repository.source, "ref": repository.ref}
        about["last"] = self.loop.hub.last
        about["turn"] = {"id": turn.id, "commit": turn.commit, "exit": turn.exit} if turn else None
        about["approval"] = {"plan": pending.id, "nodes": list(pending.plan["nodes"]), "by": pending.by} if pending else None
        yield end(0, "", **about)

    def _wait(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """Until a condition holds for all that were named (none: the cluster)."""
        type_, _, status = str(fields["condition"]).partition("=")
        wanted = status or "True"
        if type_ not in TYPES or wanted not in [s.value for s in Status]:
            yield end(1, "NoSuchCondition", name=fields["condition"], conditions=list(TYPES), nearest=nearest(type_, TYPES))
            return
        names = [f"node/{n}" for n in fields.get("nodes") or ()] or ["cluster"]
        limit = fields.get("timeout")
        until = None if limit is None else time.monotonic() + float(limit)
        while True:
            number, subjects = self.loop.hub.last, self.loop.board.subjects()
            missing = [n for n in names if n not in subjects or not subjects[n].is_(type_, Status(wanted))]
            missing = missing if self.loop.judged else names  # what a controller of before said is not known to hold now
            if not missing:
                yield end(0)
                return
            if (until is not None and time.monotonic() >= until) or not there():
                yield end(1, "WaitTimedOut", condition=fields["condition"], nodes=[n.removeprefix("node/") for n in missing])
                return
            self.loop.hub.wait(number, BEAT if until is None else max(0.0, min(BEAT, until - time.monotonic())))

    # ---- what a person says

    def _wake(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        self.loop.poke()
        yield end(0)

    def _waiting(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """The plan that waits, whole."""
        pending = self.loop.turns.approvals.pending()
        if pending:
            yield event({"event": "waiting", "plan": dict(pending.plan)})
        reason, about = what_waits(pending)
        yield end(0, reason, **about)

    def _approve(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        """A plan that waits, by its id; or the newest revision, by its commit, where it was refused."""
        name, turns = str(fields["plan"]), self.loop.turns
        pending, followed = turns.approvals.pending(), self.loop.look()
        if pending and pending.id == name:
            turns.approvals.keep(replace(pending, by=fields["by"]))
            turns.journal.append("approved", plan=name, by=fields["by"])
            self.loop.wake("approval")
            yield end(0, "Approved", plan=name)
            return
        commit = followed.head.commit or ""
        if len(name) >= 7 and commit.startswith(name) and followed.refused in ("NonFastForward", "EmptiedState"):
            turns.journal.append("revision-approved", commit=commit, by=fields["by"])
            self.loop.look()
            yield end(0, "RevisionApproved", commit=commit)
            return
        waits = [*([pending.id] if pending else []), *([commit[:12]] if followed.refused else [])]
        yield end(1, "NothingToApprove", name=name, waiting=waits)

    def _suspend(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        scope, reason, until = list(fields.get("scope") or ()), str(fields["reason"]).strip(), float(fields["until"])
        unknown = [n for n in scope if f"node/{n}" not in self.loop.board.subjects()]
        if unknown or not reason or until <= self.loop.turns.wall():
            yield end(1, "NotSuspended", nodes=unknown, text=reason, until=until)
            return
        self.loop.turns.journal.append("suspended", scope=scope, reason=reason, until=until, by=fields["by"])
        self.loop.wake("suspension")
        yield end(0, "NowSuspended", nodes=scope, until=until)

    def _resume(self, fields: Mapping[str, Any], there: There) -> Iterator[Message]:
        scope = list(fields.get("scope") or ())
        self.loop.turns.journal.append("resumed", scope=scope, by=fields["by"])
        self.loop.wake("resume")
        yield end(0, "Resumed", nodes=scope)
