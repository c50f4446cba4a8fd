"""Manifests at a commit, read from Git's object database: no checkout, bare repositories and subdirectories too.

GitPython is imported where it is used: it costs more time than validating a thousand lines.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model.desired import Revision
from reconciler.model.problem import Datum, Problem
from reconciler.model.words import nearest
from reconciler.source.load import is_manifest
from reconciler.source.tree import DirectoryTree, Failure

if TYPE_CHECKING:
    from git import Repo

_REVISION = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+-]{0,199}")  # begins with no dash: never an option of git
_REGULAR = ("100644", "100755")
MOST_FILES = 50_000  # below the folder that is read; a listing of it is kept in memory
# refs/replace is not followed: anybody who may push a ref could otherwise exchange what is read for what was judged
_ENVIRONMENT = {"GIT_LITERAL_PATHSPECS": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0"}


class ObjectUnreadable(Exception):
    """The repository lacks what its commit names: a fault of the repository, and none of the manifests."""


@dataclass(slots=True)
class GitTree:
    """The files of one folder at one commit. Blobs come from a `git cat-file --batch` that is kept open."""

    repository: Repo
    entries: dict[str, tuple[str, str, int]]  # path -> (mode, object, size in bytes)

    def files(self) -> tuple[str, ...] | Failure:
        """See Tree."""
        return tuple(sorted(p for p in self.entries if not any(part.startswith(".") for part in p.split("/"))))

    def read(self, path: str, limit: int) -> bytes | Failure:
        """See Tree. Raises ObjectUnreadable."""
        from git.exc import GitError

        if path not in self.entries:
            return Failure("no-such-file")
        mode, name, size = self.entries[path]
        if mode not in _REGULAR:
            return Failure("not-regular")
        if size > limit:
            return Failure("file-too-large", size=size)
        try:
            content: bytes = self.repository.git.get_object_data(name)[3]
        except (GitError, ValueError, OSError) as e:
            raise ObjectUnreadable(f"object {name} of {path}: {_first_line(e)}") from None
        return content


@dataclass(frozen=True, slots=True)
class Opened:
    """A folder of a repository. `uncommitted`: files below it that differ from HEAD, manifests that Git knows not."""

    tree: GitTree | DirectoryTree
    revision: Revision
    uncommitted: tuple[str, ...] = ()

    def close(self) -> None:
        """End the git processes that were kept."""
        if isinstance(self.tree, GitTree):
            self.tree.repository.close()


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
        from git import Repo
        from git.exc import GitError

        try:
            repository = Repo(self.folder)
        except (GitError, OSError, ValueError) as e:
            return self._problem("git-unreadable", detail=str(e))
        repository.git.update_environment(**_ENVIRONMENT, **_own_environment(repository))
        try:
            opened = self._opened(repository, commit, worktree)
        except (GitError, OSError, ValueError) as e:
            opened = self._problem("git-unreadable", detail=_first_line(e))
        if not (isinstance(opened, Opened) and isinstance(opened.tree, GitTree)):
            repository.close()
        return opened

    def _opened(self, repository: Repo, commit: str | None, worktree: bool) -> Opened | Problem:
        name = _resolve(repository, "HEAD" if commit is None else commit)
        if name is None:
            return self._without(repository, commit, worktree)
        summary = str(repository.commit(name).summary)[:200]
        if worktree and self.bare:
            return self._problem("git-bare")
        changed = () if self.bare else self._changed(repository)
        if worktree:
            return Opened(DirectoryTree(self.folder / self.below), Revision(name, summary, bool(changed)), changed)
        entries = _entries(repository, name, self.below)
        if entries is None:
            return self._problem("git-no-such-path", found=self.below, commit=name[:12])
        if len(entries) > MOST_FILES:
            return self._problem("git-too-many-files", files=len(entries), limit=MOST_FILES)
        return Opened(GitTree(repository, entries), Revision(name, summary), changed)

    def _without(self, repository: Repo, commit: str | None, worktree: bool) -> Opened | Problem:
        """What is left where `commit` is none: the files on disk before the first commit, or why there is nothing."""
        if commit is not None:
            near = nearest(commit, _references(repository))
            return self._problem("git-no-such-commit", found=commit, near=near)
        if (head := _verified(repository, "HEAD")) is not None:
            return self._problem("git-unreadable", detail=f"missing object {head}")
        if worktree and not self.bare:
            return Opened(DirectoryTree(self.folder / self.below), Revision(None, dirty=True))
        return self._problem("git-no-commit-yet")

    def _problem(self, code: str, **data: Datum) -> Problem:
        return Problem(self._named, 0, 0, code, data=data)

    def _changed(self, repository: Repo) -> tuple[str, ...]:
        """Files that differ from HEAD, and manifests that Git knows not, by path in the repository."""
        arguments = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", self.below or ".")
        quiet = repository.git(c="core.fsmonitor=false")  # which would run a program that the repository names
        listed = bytes(quiet.status(*arguments, stdout_as_string=False))
        prefix = self.below + "/" if self.below else ""
        entries = [(e[:2], os.fsdecode(e[3:])) for e in listed.split(b"\0") if len(e) > 3]
        return tuple(path for state, path in entries if state != b"??" or is_manifest(path.removeprefix(prefix)))


def _own_environment(repository: Repo) -> dict[str, str]:
    """What a hook of another repository has set, as it is for this one.

    Only where it is set: a Git directory that is named this way is not checked for its owner.
    """
    own = {"GIT_DIR": str(repository.git_dir), "GIT_INDEX_FILE": str(Path(repository.git_dir) / "index")}
    if repository.working_tree_dir is not None:
        own["GIT_WORK_TREE"] = str(repository.working_tree_dir)
    return {name: value for name, value in own.items() if name in os.environ}


def _resolve(repository: Repo, name: str) -> str | None:
    """The full hash of the commit that `name` (hash, branch, tag, HEAD~1) stands for, or None."""
    return _verified(repository, f"{name}^{{commit}}") if _REVISION.fullmatch(name) else None


def _verified(repository: Repo, name: str) -> str | None:
    """The hash that `name` stands for, or None where it stands for nothing. Raises GitError where Git cannot tell."""
    from git.exc import GitCommandError

    try:
        return str(repository.git.rev_parse("--verify", "--quiet", name))
    except GitCommandError as e:
        if e.status == 1:  # 128 is that Git could not look: another owner, a damaged repository
            return None
        raise


def _references(repository: Repo) -> list[str]:
    """Branches and tags."""
    listed = repository.git.for_each_ref("--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
    return str(listed).splitlines()


def _entries(repository: Repo, commit: str, below: str) -> dict[str, tuple[str, str, int]] | None:
    """Mode, object and size of each file of a folder, by path below it; None where the commit has no such folder."""
    from git.exc import GitCommandError

    try:
        listed = bytes(repository.git.ls_tree("-r", "-l", "-z", f"{commit}:{below}", stdout_as_string=False))
    except GitCommandError:
        if below:
            return None
        raise
    found: dict[str, tuple[str, str, int]] = {}
    for entry in listed.split(b"\0"):
        about, tab, name = entry.partition(b"\t")
        if tab:
            mode, kind, identity, size = about.decode().split()
            if kind == "blob":
                found[os.fsdecode(name)] = mode, identity, int(size)
    return found


def _first_line(error: Exception) -> str:
    """What git said; GitPython wraps it as `stderr: '...'`."""
    said = str(getattr(error, "stderr", "") or error).strip().removeprefix("stderr: '").rstrip("'")
    return next((line for line in said.splitlines() if line.strip()), type(error).__name__)
