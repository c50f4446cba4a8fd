"""Manifests at a commit, read from Git's object database: no checkout, bare repositories and subdirectories too.

By git's own plumbing (docs/adr/0034): a library around it costs more time than validating a thousand lines.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.errors import SourceError
from reconciler.model.desired import Revision
from reconciler.model.problem import Datum, Problem
from reconciler.model.words import nearest
from reconciler.source import gitcall
from reconciler.source.gitobjects import Objects, ObjectUnreadable, summary
from reconciler.source.load import is_manifest
from reconciler.source.tree import DirectoryTree, Failure

_REVISION = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+-]{0,199}")  # begins with no dash: never an option of git
_REGULAR = ("100644", "100755")
MOST_FILES = 50_000  # below the folder that is read; a listing of it is kept in memory
_LISTING = 1 << 26  # bytes of a listing: more than MOST_FILES of long names
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


@dataclass(slots=True)
class GitTree:
    """The files of one folder at one commit."""

    objects: Objects
    entries: dict[str, tuple[str, str, int]]  # path -> (mode, object, size in bytes)

    def files(self) -> tuple[str, ...] | Failure:
        """See Tree."""
        return tuple(sorted(p for p in self.entries if not any(part.startswith(".") for part in p.split("/"))))

    def read(self, path: str, limit: int) -> bytes | Failure:
        """See Tree. Raises ObjectUnreadable."""
        if path not in self.entries:
            return Failure("no-such-file")
        mode, name, size = self.entries[path]
        if mode not in _REGULAR:
            return Failure("not-regular")
        if size > limit:
            return Failure("file-too-large", size=size)
        found = self.objects.find(name)
        if found is None:
            raise ObjectUnreadable(f"missing object {name} of {path}")
        return found.content


@dataclass(frozen=True, slots=True)
class Opened:
    """A folder of a repository. `uncommitted`: files below it that differ from HEAD, manifests that Git knows not."""

    tree: GitTree | DirectoryTree
    revision: Revision
    uncommitted: tuple[str, ...] = ()

    def close(self) -> None:
        """End the git processes that were kept."""
        if isinstance(self.tree, GitTree):
            self.tree.objects.close()


@dataclass(slots=True)
class Located:
    """A repository around a path: the folder with .git, or the bare repository, and the path below it ("" for all)."""

    folder: Path
    below: str
    bare: bool
    _named: str = field(default="")

    @classmethod
    def around(cls, path: Path) -> Located | None:
        """The repository that `path` is in; None where it is in none. The path itself need not be there (any more)."""
        at = Path(os.path.abspath(path))  # noqa: PTH100 - links are kept: they are names inside the work tree
        for folder in (at, *at.parents):
            bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
            if bare or (folder / ".git").exists():
                below = at.relative_to(folder).as_posix()
                return cls(folder, "" if below == "." else below, bare, str(path))
        return None

    def open(self, commit: str | None, *, worktree: bool = False) -> Opened | Problem:
        """The folder at `commit` (None: HEAD), or as it is on disk. The tree has to be closed.

        Problems: `git-no-commit-yet`, `git-no-such-commit`, `git-no-such-path`, `git-bare`, `git-unreadable`,
        `git-too-many-files`.
        """
        objects = Objects(self.folder)
        try:
            opened = self._opened(objects, commit, worktree)
        except SourceError as e:
            opened = self._problem("git-unreadable", detail=str(e.data.get("detail") or e.reason))
        except ObjectUnreadable as e:
            opened = self._problem("git-unreadable", detail=str(e))
        if not (isinstance(opened, Opened) and isinstance(opened.tree, GitTree)):
            objects.close()
        return opened

    def _opened(self, objects: Objects, commit: str | None, worktree: bool) -> Opened | Problem:
        name = "HEAD" if commit is None else commit
        found = objects.find(f"{name}^{{commit}}") if _REVISION.fullmatch(name) else None
        if found is None:
            return self._without(commit, worktree)
        revision = Revision(found.name, summary(found.content)[:200])
        if worktree and self.bare:
            return self._problem("git-bare")
        changed = () if self.bare else self._changed()
        if worktree:
            return Opened(DirectoryTree(self.folder / self.below), replace(revision, dirty=bool(changed)), changed)
        entries = self._entries(found.name)
        if entries is None:
            return self._problem("git-no-such-path", found=self.below, commit=found.name[:12])
        if len(entries) > MOST_FILES:
            return self._problem("git-too-many-files", files=len(entries), limit=MOST_FILES)
        return Opened(GitTree(objects, entries), revision, changed)

    def _without(self, commit: str | None, worktree: bool) -> Opened | Problem:
        """What is left where `commit` is none: the files on disk before the first commit, or why there is nothing."""
        if commit is not None:
            listed = self._git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
            return self._problem("git-no-such-commit", found=commit, near=nearest(commit, listed.decode().splitlines()))
        head = gitcall.call(self.folder, "rev-parse", "--verify", "--quiet", "HEAD")
        if head.status != 1:  # 0: it names what is not there; 128: Git could not look
            detail = f"missing object {head.text.strip()}" if head.status == 0 else head.first_error
            return self._problem("git-unreadable", detail=detail)
        if worktree and not self.bare:
            return Opened(DirectoryTree(self.folder / self.below), Revision(None, dirty=True))
        return self._problem("git-no-commit-yet")

    def _problem(self, code: str, **data: Datum) -> Problem:
        return Problem(self._named, 0, 0, code, data=data)

    def _changed(self) -> tuple[str, ...]:
        """Files that differ from HEAD, and manifests that Git knows not, by path in the repository."""
        arguments = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", self.below or ".")
        listed = self._git("-c", "core.fsmonitor=false", "status", *arguments)  # a program that the repository names
        prefix = self.below + "/" if self.below else ""
        entries = [(e[:2], os.fsdecode(e[3:])) for e in listed.split(b"\0") if len(e) > 3]
        return tuple(path for state, path in entries if state != b"??" or is_manifest(path.removeprefix(prefix)))

    def _entries(self, commit: str) -> dict[str, tuple[str, str, int]] | None:
        """Mode, object and size of each file of the folder, by path below it; None where the commit has no such folder."""
        said = gitcall.call(self.folder, "ls-tree", "-r", "-l", "-z", f"{commit}:{self.below}", limit=_LISTING)
        if said.status != 0:
            if self.below:
                return None
            raise ObjectUnreadable(said.first_error)
        found: dict[str, tuple[str, str, int]] = {}
        for entry in said.out.split(b"\0"):
            about, tab, name = entry.partition(b"\t")
            if tab:
                mode, kind, identity, size = about.decode().split()
                if kind == "blob" and not size.isdigit():
                    raise ObjectUnreadable(f"missing object {identity} of {os.fsdecode(name)}")
                if kind == "blob":
                    found[os.fsdecode(name)] = mode, identity, int(size)
        return found

    def _git(self, *words: str) -> bytes:
        """What it prints. Raises ObjectUnreadable where Git cannot."""
        said = gitcall.call(self.folder, *words, limit=_LISTING, more=_LITERAL)
        if said.status != 0:
            raise ObjectUnreadable(said.first_error)
        return said.out
