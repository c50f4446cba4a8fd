"""What stands against a push, judged while its objects are in quarantine: no checkout, no ref written, nobody told.

Only the watched branch is judged; tags and other branches are nobody's desired state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.errors import SourceError
from reconciler.model.desired import Revision
from reconciler.model.problem import Datum, Problem
from reconciler.source import gitcall, signatures
from reconciler.source.api import Loaded, validate_commit
from reconciler.source.signatures import Keys, Mode

MOST_BYTES = 64 << 20  # of one push, packed: manifests, locks and small files; models and wheels live elsewhere
MOST_REFS = 10_000  # lines that a hook reads
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOTHING = re.compile(r"0+")


@dataclass(frozen=True, slots=True)
class Update:
    """One ref that a push moves. `old` and `new` None: it was not there, it goes away."""

    old: str | None
    new: str | None
    ref: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """What is watched: `ref` of the bare repository `folder`, manifests below `below`; who has to sign; bytes a push may bring."""

    folder: Path
    ref: str
    below: str = ""
    mode: Mode = Mode.NONE
    keys: Keys = field(default_factory=Keys)
    most_bytes: int = MOST_BYTES


def updates(lines: Iterable[str]) -> tuple[Update, ...]:
    """The lines `OLD NEW REF` that git gives its hooks. Raises SourceError(NotAHook) for anything else."""
    found: list[Update] = []
    for line in lines:
        old, _, rest = line.rstrip("\n").partition(" ")
        new, _, ref = rest.partition(" ")
        if not (_HASH.fullmatch(old) and _HASH.fullmatch(new) and ref.startswith("refs/")) or len(found) >= MOST_REFS:
            raise SourceError("NotAHook", line=line.rstrip("\n"))
        found.append(Update(_there(old), _there(new), ref))
    return tuple(found)


def _there(name: str) -> str | None:
    return None if _NOTHING.fullmatch(name) else name


def watched(guarded: Guarded, found: Iterable[Update]) -> Update | None:
    """What a push does to the watched branch; None where it leaves it alone. Git gives each ref once."""
    return next((update for update in found if update.ref == guarded.ref), None)


def judge(guarded: Guarded, update: Update) -> Loaded:
    """What would be declared after the update, and every problem that stands against it.

    Problems of manifests, and push-deletes, push-rewrites, push-too-large, those of `signatures`. A branch that goes back or away
    is judged no further: what it would declare is not what is wrong. Raises SourceError.
    """
    if (against := _against(guarded, update)) is not None or update.new is None:
        return Loaded(str(guarded.folder), Revision(update.new), problems=(against,) if against else ())
    unsigned = signatures.judged(guarded.folder, guarded.mode, guarded.keys, update.old, update.new)
    loaded = validate_commit(guarded.folder, guarded.below, update.new)
    return replace(loaded, problems=(*unsigned, *loaded.problems))


def _against(guarded: Guarded, update: Update) -> Problem | None:
    """Why the branch cannot be moved like this, whatever its manifests say."""
    if update.new is None:
        return _problem(guarded, "push-deletes")
    if (size := _quarantined()) > guarded.most_bytes:
        return _problem(guarded, "push-too-large", size=size, limit=guarded.most_bytes)
    if update.old is not None and not _follows(guarded.folder, update.old, update.new):
        return _problem(guarded, "push-rewrites", old=update.old[:12])
    return None


def _problem(guarded: Guarded, code: str, **data: Datum) -> Problem:
    branch = guarded.ref.removeprefix("refs/heads/")
    return Problem(branch, 0, 0, code, data={"branch": branch, "ref": guarded.ref, **data})


def _quarantined() -> int:
    """Bytes of the objects that the push brought; 0 where git made no quarantine, since nothing was brought."""
    at = os.environ.get("GIT_QUARANTINE_PATH")
    if not at:
        return 0
    return sum((Path(folder) / name).stat().st_size for folder, _, names in os.walk(at) for name in names)


def _follows(folder: Path, old: str, new: str) -> bool:
    """Whether `old` is in the history of `new`. Raises SourceError where git cannot tell."""
    said = gitcall.call(folder, "merge-base", "--is-ancestor", old, new)
    if said.status in (0, 1):
        return said.status == 0
    raise SourceError("Unreadable", path=str(folder), detail=said.err.strip().partition("\n")[0])
