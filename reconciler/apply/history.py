"""The history: a bare Git repository of normalised node states, written only when one of them changed."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.errors import SourceError, Usage

REF = "refs/heads/main"
NOTES = "refs/notes/reconcile"
_ID = re.compile(r"[0-9a-f]{4,40}")
QUIET = 60.0  # seconds between two commits that nobody asked for
UNASKED = "Recorded-by: apply"  # the trailer of such a commit


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the history: when (Unix seconds), why, and which `CLUSTER/NODE` it changed."""

    id: str
    time: float
    message: str
    changed: tuple[str, ...]


class History:
    """`stateDir/state.git`; made at its first use. GitPython is imported only here and when it is used."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _repository(self, *, create: bool = False) -> Any:
        import git

        if not self._path.exists():
            if not create:
                raise Usage("NoSnapshots")
            git.Repo.init(str(self._path), bare=True, initial_branch="main")
        try:
            return git.Repo(str(self._path))
        except git.exc.InvalidGitRepositoryError:
            raise SourceError("Unreadable", path=str(self._path), detail="not a Git repository") from None

    def record(self, cluster: str, nodes: Mapping[str, Mapping[str, Any]], message: str, *, asked: bool) -> str | None:
        """Commit what differs from the newest state; the commit's id, or None where nothing does.

        Commits that nobody asked for come at most once a minute: a further one takes the place of the one before.
        """
        repository = self._repository(create=True)
        head = repository.head.commit if repository.head.is_valid() else None
        changed = {}
        for name, state in nodes.items():
            path, text = f"snapshots/{cluster}/{name}.json", (json.dumps(state, indent=1, sort_keys=True) + "\n").encode()
            if head is None or _blob(head, path) != text:
                changed[path] = text
        if not changed:
            return None
        full = f"{message}\n" + ("" if asked else f"\n{UNASKED}\n")
        amend = head is not None and not asked and UNASKED in head.message and time.time() - head.committed_date < QUIET
        with tempfile.TemporaryFile() as stream:  # git reads from a real file descriptor
            stream.write(_stream(changed, full, head, amend=amend))
            stream.seek(0)
            repository.git.fast_import("--quiet", "--force", istream=stream)
        return str(repository.commit(REF).hexsha)

    def note(self, commit: str, text: str) -> None:
        """Say `text` of a commit of the manifest repository, as a Git note of this one (`git notes --ref=reconcile`)."""
        repository = self._repository(create=True)
        data = f"{text}\n".encode()
        former = str(repository.git.for_each_ref("--format=%(objectname)", NOTES))
        parent = f"from {former}\n" if former else ""
        head = f"commit {NOTES}\ncommitter reconcile <reconcile@localhost> {int(time.time())} +0000\ndata 0\n{parent}"
        body = f"M 100644 inline {commit}\ndata {len(data)}\n".encode() + data + b"\n"
        with tempfile.TemporaryFile() as stream:
            stream.write(head.encode() + body)
            stream.seek(0)
            repository.git.fast_import("--quiet", "--force", istream=stream)

    def entries(self) -> list[Entry]:
        """All commits, newest first."""
        repository = self._repository()
        if not repository.head.is_valid():
            return []
        found = []
        for commit in repository.iter_commits(REF):
            names = tuple(sorted(p[len("snapshots/") : -len(".json")] for p in commit.stats.files if p.startswith("snapshots/")))
            found.append(Entry(commit.hexsha, float(commit.committed_date), commit.message.partition("\n")[0], names))
        return found

    def show(self, id_: str, node: str | None) -> dict[str, Any]:
        """`CLUSTER/NODE` -> state at one commit (an id, or `latest`). Raises Usage(NoSuchSnapshot)."""
        import gitdb

        repository = self._repository()
        if not repository.head.is_valid():
            raise Usage("NoSnapshots")
        try:
            if id_ != "latest" and not _ID.fullmatch(id_):  # Git would take much more for a revision
                raise ValueError
            commit = repository.commit(REF if id_ == "latest" else id_)
            _ = commit.tree  # read only now: an id of the right form need not be there
        except (gitdb.exc.ODBError, ValueError, IndexError):
            raise Usage("NoSuchSnapshot", name=id_) from None
        found = {}
        for blob in commit.tree.traverse():
            name = str(blob.path)[len("snapshots/") : -len(".json")]
            if blob.type == "blob" and (node is None or node in (name, name.rpartition("/")[2])):
                found[name] = json.loads(blob.data_stream.read())
        if not found:
            raise Usage("NoSuchSnapshot", name=f"{id_} {node or ''}".strip())
        return found


def _blob(commit: Any, path: str) -> bytes | None:
    try:
        return bytes((commit.tree / path).data_stream.read())
    except KeyError:
        return None


def _stream(files: Mapping[str, bytes], message: str, head: Any, *, amend: bool) -> bytes:
    """A `git fast-import` stream of one commit on `head`, or (`amend`) in its place with all that it holds.

    Paths are made of names that manifests allow: nothing in them needs quoting.
    """
    text = message.encode()
    parts = [f"commit {REF}\ncommitter reconcile <reconcile@localhost> {int(time.time())} +0000\ndata {len(text)}\n".encode(), text]
    parents = [head] if head is not None and not amend else list(head.parents) if amend else []
    parts += [f"\nfrom {parent.hexsha}".encode() for parent in parents[:1]]
    parts.append(b"\n")
    if amend:
        parts.append(f'M 040000 {head.tree.hexsha} ""\n'.encode())
    for path, data in files.items():
        parts += [f"M 100644 inline {path}\ndata {len(data)}\n".encode(), data, b"\n"]
    return b"".join(parts)
