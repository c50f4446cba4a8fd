"""The repository that is followed: a local one is read in place, one behind a URL is mirrored. A failed look changes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from reconciler.controller.revisions import Head
from reconciler.errors import SourceError
from reconciler.source import gitcall
from reconciler.source.gitcall import Said

LOOK, FETCH = 60.0, 900.0  # seconds: for a list of references, and for what is fetched
_INCOMING, _ACCEPTED = "refs/reconcile/incoming", "refs/reconcile/accepted"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://|[^/]+@[^/]+:|[A-Za-z0-9.-]+:(?!//)")
# programs and places that a repository, or whoever started us, could name
_QUIET = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "gc.autoDetach=false",
)
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
_OURS = ("LC_ALL", "GIT_NO_REPLACE_OBJECTS", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS")  # what `gitcall` says itself


class GitFailed(Exception):
    """Git could not do it; the first line that it said."""


class Repository:
    """One reference of one repository. `path`: where its commits are read; `manifests`: the folder of it that holds manifests.

    `mirrored`: a local one is copied as well, so that its end is not the end of what was taken from it.
    """

    def __init__(self, source: str, ref: str, mirror: Path, *, below: str = "", mirrored: bool = False) -> None:
        here = Path(source).exists()
        self.source, self.ref = str(Path(source).resolve()) if here else source, ref
        self.remote = mirrored or (not here and bool(_SCHEME.match(source)))
        self.path = mirror if self.remote else Path(source)
        self.manifests = self.path / below

    def look(self, accepted: str | None) -> Head:
        """The newest commit, or why there is none to be had; fetched where it was not here. Never raises."""
        try:
            commit = self._remote() if self.remote else self._local()
            if commit is None:
                return self._missing(accepted)
            return Head(commit, forward=accepted is None or self.contains(commit, accepted))
        except GitFailed as e:
            return Head(None, "RepositoryUnread", (("repository", self.source), ("detail", str(e))))

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is `commit` or in its history. Raises GitFailed where Git cannot tell."""
        done = self._git("merge-base", "--is-ancestor", ancestor, commit, statuses=(0, 1, 128))
        return done.status == 0  # 128: that commit is not here any more, which no forward history does

    def keep(self, commit: str) -> None:
        """Let nothing collect the commit that is acted on, also when the other side rewrites its history."""
        if self.remote:
            self._git("update-ref", _ACCEPTED, commit)

    def _local(self) -> str | None:
        return self._at(self.ref)

    def _at(self, ref: str) -> str | None:
        done = self._git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", statuses=(0, 1))
        return done.text.strip() if done.status == 0 else None

    def _missing(self, accepted: str | None) -> Head:
        """Nothing was pushed yet, or what we followed is gone: only a person knows why."""
        about = (("repository", self.source), ("ref", self.ref))
        return Head(None, "RefGone" if accepted else "NothingPushed", about, transient=accepted is None)

    def _remote(self) -> str | None:
        if not (self.path / "HEAD").exists():
            self.path.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare")
        listed = self._git("ls-remote", "--", self.source, self.ref, f"{self.ref}^{{}}").text.splitlines()
        named = {ref: commit for commit, _, ref in (line.partition("\t") for line in listed)}
        newest = named.get(f"{self.ref}^{{}}") or named.get(self.ref)
        if newest is None:
            return None
        # a commit that is here need not be whole: a fetch that was cut leaves some of its objects. The reference moves at its end
        if self._at(_INCOMING) != newest:
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
            self._git("fetch", *options, "--", self.source, f"+{self.ref}:{_INCOMING}", seconds=FETCH)
            newest = self._git("rev-parse", "--verify", f"{_INCOMING}^{{commit}}").text.strip()
        return newest

    def _git(self, *words: str, seconds: float = LOOK, statuses: tuple[int, ...] = (0,)) -> Said:
        try:
            said = gitcall.call(self.path, *_QUIET, *words, timeout=seconds, more=_reach())
        except SourceError as e:
            raise GitFailed(str(e.data.get("detail") or f"no answer within {seconds:g} s")) from None
        if said.status not in statuses:
            raise GitFailed(said.first_error[:500])
        return said


def _reach() -> Mapping[str, str]:
    """What git may need to reach another machine (an agent, a proxy, certificates); nobody is there to be asked for a password."""
    ssh = os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=20")
    return {
        **{k: v for k, v in os.environ.items() if k not in (*_OF_A_HOOK, *_OURS)},
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": ssh,
    }
