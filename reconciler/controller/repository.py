"""The repository that is followed: a local one is read in place, one behind a URL is mirrored. A failed look changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from reconciler.controller.revisions import Head

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
_KEPT_OUT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")


class GitFailed(Exception):
    """Git could not do it: `status` and the last line that it said."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class Repository:
    """One reference of one repository. `path` is what manifests are read from, at a commit."""

    def __init__(self, source: str, ref: str, mirror: Path) -> None:
        self.source, self.ref = source, ref
        self.remote = bool(_SCHEME.match(source)) and not Path(source).exists()
        self.path = mirror if self.remote else Path(source)

    def look(self, accepted: str | None) -> Head:
        """The newest commit, or why there is none to be had; fetched where it was not here. Never raises."""
        try:
            commit = self._remote() if self.remote else self._local()
            if commit is None:
                return self._missing(accepted)
            return Head(commit, forward=accepted is None or self.contains(commit, accepted))
        except GitFailed as e:
            return Head(None, "RepositoryUnread", (("repository", self.source), ("detail", e.said)))

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is `commit` or in its history. Raises GitFailed where Git cannot tell."""
        done = self._git("merge-base", "--is-ancestor", ancestor, commit, statuses=(0, 1, 128))
        return done.returncode == 0  # 128: that commit is not here any more, which no forward history does

    def keep(self, commit: str) -> None:
        """Let nothing collect the commit that is acted on, also when the other side rewrites its history."""
        if self.remote:
            self._git("update-ref", _ACCEPTED, commit)

    def _local(self) -> str | None:
        done = self._git("rev-parse", "--verify", "--quiet", f"{self.ref}^{{commit}}", statuses=(0, 1))
        return done.stdout.strip() if done.returncode == 0 else None

    def _missing(self, accepted: str | None) -> Head:
        """Nothing was pushed yet, or what we followed is gone: only a person knows why."""
        about = (("repository", self.source), ("ref", self.ref))
        return Head(None, "RefGone" if accepted else "NothingPushed", about, transient=accepted is None)

    def _remote(self) -> str | None:
        if not (self.path / "HEAD").exists():
            self._run(("git", "init", "--quiet", "--bare", str(self.path)), LOOK, (0,))
        listed = self._git("ls-remote", "--", self.source, self.ref, f"{self.ref}^{{}}").stdout.splitlines()
        named = {ref: commit for commit, _, ref in (line.partition("\t") for line in listed)}
        newest = named.get(f"{self.ref}^{{}}") or named.get(self.ref)
        if newest is None:
            return None
        if self._git("cat-file", "-e", f"{newest}^{{commit}}", statuses=(0, 1, 128)).returncode:
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
            self._git("fetch", *options, "--", self.source, f"+{self.ref}:{_INCOMING}", seconds=FETCH)
            newest = self._git("rev-parse", "--verify", f"{_INCOMING}^{{commit}}").stdout.strip()
        return newest

    def _git(self, *words: str, seconds: float = LOOK, statuses: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        return self._run(("git", *_QUIET, "-C", str(self.path), *words), seconds, statuses)

    def _run(self, argv: tuple[str, ...], seconds: float, statuses: tuple[int, ...]) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                argv,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitFailed(-1, f"no answer within {seconds:g} s") from None
        except OSError as e:
            raise GitFailed(-1, f"git: {e.strerror}") from None
        if done.returncode not in statuses:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise GitFailed(done.returncode, (said or ["git failed"])[-1][:500])
        return done


def _environment() -> Mapping[str, str]:
    """Nobody is there to be asked for a password."""
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    ssh = {"GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=20")}
    return {**{k: v for k, v in os.environ.items() if k not in _KEPT_OUT}, **own, **ssh}
