"""Following the repository: which revision is to be acted on, and what is wrong with the newest where it is not that one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.apply.journal import Journal
from reconciler.controller import revisions
from reconciler.controller.repository import Repository
from reconciler.controller.revisions import Head, Next
from reconciler.model.problem import Problem
from reconciler.source import Loaded, load_desired
from reconciler.source.signatures import Keys, Mode, judged


@dataclass(frozen=True, slots=True)
class Followed:
    """`target`: the revision to act on, None where there is none yet. `refused`: why the newest, `head`, is not it, with data."""

    head: Head
    target: Loaded | None
    refused: str = ""
    data: Mapping[str, Any] | None = None
    transient: bool = False

    @property
    def commit(self) -> str | None:
        return self.target.revision.commit if self.target else None


Signed = Callable[[Path, str | None, str], tuple[Problem, ...]]  # repository, accepted, new -> what is not signed as asked


def unasked(repository: Path, before: str | None, new: str) -> tuple[Problem, ...]:
    """Nobody asked for signatures."""
    return ()


def signed_as(mode: Mode, keys: Keys) -> Signed:
    """The check of signatures that is asked for. Raises Usage where nobody could ever sign."""
    if mode is Mode.NONE:
        return unasked
    keys = keys.checked()
    return lambda repository, before, new: judged(repository, mode, keys, before, new)


class Follower:
    """`look` may be called by any thread; it is done by one at a time."""

    def __init__(self, repository: Repository, cluster: str | None, journal: Journal, signed: Signed = unasked) -> None:
        self.repository, self._signed = repository, signed
        self._cluster, self._journal = cluster, journal
        self._guard = threading.Lock()
        self._target: Loaded | None = None
        self._refused: dict[str, Followed] = {}  # the newest commit that was judged and found wanting

    def look(self) -> Followed:
        """Look at the repository once."""
        with self._guard:
            records = tuple(self._journal.records)
            before = self._target.revision.commit if self._target else revisions.accepted(records)
            head = self.repository.look(before)
            followed = self._judge(head, revisions.choose(head, before, revisions.approved(records)), records)
            self._note(followed, records)
            return followed

    def _judge(self, head: Head, chosen: Next, records: tuple[revisions.Record, ...]) -> Followed:
        if chosen.commit is None:
            return Followed(head, None, chosen.refused, chosen.data, chosen.transient)
        if self._target is None or self._target.revision.commit != chosen.commit:
            known = self._refused.get(chosen.commit)
            approved = chosen.commit in revisions.approved(records)
            if known and not (approved and known.refused == "EmptiedState"):
                return replace(known, head=head, target=self._target)
            if unsigned := self._signed(self.repository.path, revisions.accepted(records), chosen.commit):
                return self._wanting(head, chosen.commit, unsigned, "NotSigned")
            loaded = load_desired(self.repository.manifests, commit=chosen.commit, cluster=self._cluster)
            if loaded.desired is None and not (approved and revisions.emptied(loaded.problems)):
                reason = "EmptiedState" if revisions.emptied(loaded.problems) else "ManifestsWrong"
                return self._wanting(head, chosen.commit, loaded.problems, reason)
            self._target = loaded
            self.repository.keep(chosen.commit)
        return Followed(head, self._target, chosen.refused, chosen.data, chosen.transient)

    def _wanting(self, head: Head, commit: str, found_wrong: tuple[Problem, ...], reason: str) -> Followed:
        """The newest cannot be used: what was acted on before stays, and is loaded where this process has not done so yet."""
        if any(p.code == "git-unreadable" for p in found_wrong):
            about = {"repository": self.repository.source, "detail": str(found_wrong[0].data.get("detail", ""))}
            return Followed(head, self._target, "RepositoryUnread", about, transient=True)
        problems = [{**asdict(p), "data": dict(p.data)} for p in found_wrong]
        data = {"commit": commit, "count": len(problems), "problems": problems}
        former = revisions.accepted(self._journal.records)
        if self._target is None and former not in (None, commit):
            last = load_desired(self.repository.manifests, commit=former, cluster=self._cluster)
            self._target = last if last.desired is not None else None
        found = Followed(head, self._target, reason, data)
        # whether it is signed is asked each time: keys may be added without a commit
        self._refused = {commit: found} if reason != "NotSigned" else {}
        return found

    def _note(self, followed: Followed, records: tuple[revisions.Record, ...]) -> None:
        """In the journal: each revision that is taken, and each that is refused, once."""
        if followed.commit is not None and followed.commit != revisions.accepted(records):
            about = {"repository": self.repository.source, "ref": self.repository.ref}
            self._journal.append("revision-taken", commit=followed.commit, **about)
        newest = followed.head.commit
        if followed.refused and newest and newest != followed.commit:
            last = next((r for r in reversed(records) if r["type"] == "revision-refused"), None)
            if last is None or (last["commit"], last["reason"]) != (newest, followed.refused):
                self._journal.append("revision-refused", commit=newest, reason=followed.refused, data=dict(followed.data or {}))
