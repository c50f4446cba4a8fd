"""From a path to a desired state: at a commit, or as the folder is on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model.desired import DesiredState, Origin, Revision
from reconciler.model.problem import Problem
from reconciler.source.load import Documents, load
from reconciler.source.report import Report
from reconciler.source.resolve import Resolver
from reconciler.source.tree import DirectoryTree, Recorder, Tree

if TYPE_CHECKING:
    from reconciler.source.git import Opened


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a repository declares, or why it declares nothing.

    `desired` is the chosen cluster's state, None where several were validated; `states` are those of all.
    There are none with any problem, nor where anything is unchecked; neither are there `warnings`, which a problem
    may be the cause of. `documents` counts by kind, mistaken ones included; `nodes` those of all clusters.
    `unchecked` names documents ("Cluster big") that could not be judged whole because something is broken.
    `uncommitted`: files of the work tree that differ from the commit which was read.
    """

    root: str
    revision: Revision
    desired: DesiredState | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    documents: Mapping[str, int] = field(default_factory=dict)
    nodes: int = 0
    states: Mapping[str, DesiredState] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()


def load_desired(path: str | Path, *, commit: str | None = None, worktree: bool = False, cluster: str | None = None) -> Loaded:
    """The desired state of one cluster (`cluster`, or the only one) from the folder `path`.

    Inside Git it is read at `commit` (a hash, branch or tag; None: HEAD), so that a plan names what it was made from;
    with `worktree`, and outside Git, the files on disk are read. Never raises for what it reads: see `Loaded.problems`.
    """
    from reconciler.source.git import Located

    root, wanted = str(path), _Wanted(cluster)
    located = Located.around(Path(path))
    if located is None:
        if commit is not None:
            return _failed(root, Problem(root, 0, 0, "git-not-a-repository", data={"found": commit}))
        return _judge(root, DirectoryTree(Path(path)), Revision(None), wanted)
    opened = located.open(commit, worktree=worktree)
    if isinstance(opened, Problem):
        return _failed(root, opened)
    return replace(_judge_opened(root, opened, wanted), uncommitted=opened.uncommitted)


def validate_path(path: str | Path) -> Loaded:
    """Judge all manifests of a folder on disk, several clusters too, or those of one file. Git is not asked.

    For one file, what it names and does not hold is not judged: see `Loaded.unchecked`.
    """
    at = Path(path)
    only = at.name if not at.is_dir() and at.suffix in (".yaml", ".yml") else None
    tree = DirectoryTree(at if only is None else at.parent)
    return _judge(str(path), tree, Revision(None), _Wanted(only=only, every=True))


def validate_commit(folder: Path, below: str, commit: str) -> Loaded:
    """Judge all manifests below a folder of a repository at one commit, several clusters too: as `validate_path`, without files.

    `folder`: the bare repository. Objects that a push brought and that are in quarantine are read as well.
    """
    from reconciler.source.git import Located

    opened = Located(folder, below, bare=True).open(commit)
    if isinstance(opened, Problem):
        return _failed(str(folder), opened)
    return _judge_opened(below or ".", opened, _Wanted(every=True))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which cluster, or `every` one; `only`: the one file that is read as manifests."""

    cluster: str | None = None
    only: str | None = None
    every: bool = False


def _failed(root: str, problem: Problem) -> Loaded:
    return Loaded(root, Revision(None), problems=(problem,))


def _judge_opened(root: str, opened: Opened, wanted: _Wanted) -> Loaded:
    from reconciler.source.gitobjects import ObjectUnreadable

    try:
        return _judge(root, opened.tree, opened.revision, wanted)
    except ObjectUnreadable as e:
        return _failed(root, Problem(root, 0, 0, "git-unreadable", data={"detail": str(e)}))
    finally:
        opened.close()


def _judge(root: str, tree: Tree, revision: Revision, wanted: _Wanted) -> Loaded:
    """Load, resolve and choose."""
    report, recorder = Report(), Recorder(tree)
    documents = load(recorder, report, root, wanted.only)
    documents.complete &= wanted.only is None
    states = Resolver(recorder, documents, report).resolve(revision)
    chosen = _choose(documents, report, root, wanted)
    whole = not report.problems and not report.unchecked
    return Loaded(
        root,
        revision,
        desired=states[chosen] if chosen is not None and whole else None,
        problems=report.sorted_problems(),
        warnings=() if report.problems else report.sorted_warnings(),
        documents=documents.counts,
        nodes=sum(len(state.nodes) for state in states.values()),
        states=states if whole else {},
        unchecked=tuple(sorted(report.unchecked)),
    )


def _choose(documents: Documents, report: Report, root: str, wanted: _Wanted) -> str | None:
    """The name of the cluster that is meant; None where it is not clear, with a problem unless all are wanted."""
    names, at = sorted(documents.clusters), Origin(root, 0, 0)
    sure = documents.complete and documents.counts and all(kind != "Cluster" for kind, _ in documents.broken)
    if wanted.cluster is not None:
        if wanted.cluster in names:
            return wanted.cluster
        if sure:
            report.say(at, "unknown-cluster", data=report.choice(wanted.cluster, names))
    elif len(names) == 1:
        return names[0]
    elif not names and sure:
        report.say(at, "no-cluster")
    elif names and not wanted.every:
        report.say(at, "several-clusters", data=report.choice("", names))
    return None
