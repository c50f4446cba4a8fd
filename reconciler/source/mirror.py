"""A bare copy of one branch of somebody else's repository: what was fetched, and what was taken for good."""

from __future__ import annotations

from pathlib import Path

from reconciler.errors import SourceError, Usage
from reconciler.source import gitcall

TIMEOUT = 600.0  # seconds of one fetch
_INCOMING, _TAKEN = "refs/reconcile/incoming", "refs/reconcile/taken"
_OPTIONS = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
_SSH = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20"}  # nobody is there to be asked


class Mirror:
    """`folder` is made at the first fetch. Nothing that is fetched counts until it is taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fetch(self, url: str, ref: str) -> str:
        """The newest commit of `ref`. Raises Usage (NoSuchPath) or SourceError(MirrorFailed), after which all is as before."""
        if url.startswith("-"):
            raise Usage("NoSuchPath", path=url)
        try:
            if not (self.folder / "HEAD").exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                gitcall.ask(self.folder, "init", "--quiet", "--bare")
            words = ("-c", "protocol.ext.allow=never", "fetch", *_OPTIONS, "--", url, f"+{ref}:{_INCOMING}")
            said = gitcall.call(self.folder, *words, timeout=TIMEOUT, more=_SSH)
            if said.status == 0:
                return gitcall.ask(self.folder, "rev-parse", "--verify", f"{_INCOMING}^{{commit}}")
        except SourceError as e:
            raise SourceError("MirrorFailed", repository=url, detail=str(e.data.get("detail") or e.reason)) from None
        last = [line for line in said.err.splitlines() if line.strip()]
        raise SourceError("MirrorFailed", repository=url, detail=(last or ["git fetch failed"])[0])

    def taken(self) -> str | None:
        """The commit that was taken last."""
        if not (self.folder / "HEAD").exists():
            return None
        return gitcall.ask(self.folder, "for-each-ref", "--format=%(objectname)", _TAKEN) or None

    def take(self, commit: str) -> None:
        """From now on it is the last good one, and git keeps it."""
        gitcall.ask(self.folder, "update-ref", _TAKEN, commit)

    def follows(self, old: str, new: str) -> bool:
        """Whether `old` is in the history of `new`. Raises SourceError where git cannot tell."""
        said = gitcall.call(self.folder, "merge-base", "--is-ancestor", old, new)
        if said.status in (0, 1):
            return said.status == 0
        raise SourceError("Unreadable", path=str(self.folder), detail=said.err.strip().partition("\n")[0])
