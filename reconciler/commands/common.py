"""What the commands that look at nodes share: options, the desired state, the pool of channels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from reconciler.commands.base import (
    always_json,
    as_json,
    cluster,
    commit,
    on,
    options,
    print_json,
    print_line,
    state_dir,
    target,
)
from reconciler.engine import Engine
from reconciler.errors import ReconcileError
from reconciler.events import Emit, Event
from reconciler.model.desired import DesiredState
from reconciler.model.hostlist import expand
from reconciler.plan.select import select
from reconciler.pool import Pool
from reconciler.render import data, notes
from reconciler.render.problems import problem_text, problem_words
from reconciler.render.progress import Progress
from reconciler.render.text import count
from reconciler.source import Loaded, load_desired
from reconciler.transport.base import Transport
from reconciler.transport.ssh import SshTransport

__all__ = ["always_json", "as_json", "cluster", "commit", "on", "options", "print_json", "print_line", "state_dir", "target"]


class Refused(ReconcileError):
    """The manifests are not right; what is wrong was already said."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for, from the options above."""

    path: str
    commit: str | None = None
    worktree: bool = False
    cluster: str | None = None
    on: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    as_json: bool = False


def desired_state(request: Request) -> tuple[DesiredState, Loaded]:
    """The desired state. Where the manifests have problems, all are said and Refused is raised."""
    loaded = load_desired(request.path, commit=request.commit, worktree=request.worktree, cluster=request.cluster)
    if loaded.uncommitted and not request.worktree:
        click.echo(notes.uncommitted(loaded.uncommitted), err=True)
    if loaded.desired is None:
        for problem in loaded.problems:
            click.echo(problem_text(problem), err=True)
        raise Refused("ManifestProblems", problems=count(len(loaded.problems), "problem"), path=request.path)
    return loaded.desired, loaded


def say_unpinned(loaded: Loaded) -> None:
    """Which packages no lock has: a plan that is made all the same says so."""
    for problem in loaded.warnings:
        if problem.code in ("not-pinned", "prefix-not-pinned"):
            click.echo(notes.unpinned(problem), err=True)


@contextlib.contextmanager
def progress(as_json: bool, watch: Emit | None = None) -> Iterator[Emit]:
    """Where events go: to stderr for people, to stdout as JSON lines when `watch` says how."""
    if as_json:
        yield watch or (lambda event: None)
        return
    with Progress() as shown:
        yield shown


def stream(event: Event) -> None:
    """One event as one line on stdout, at once."""
    print_line(data.event(event))


def told(loaded: Loaded) -> list[dict[str, Any]]:
    """Problems and warnings, as --json says them."""
    return [
        {"file": p.file, "line": p.line, "column": p.column, "code": p.code, "message": problem_words(p), "severity": severity}
        for severity, found in (("error", loaded.problems), ("warning", loaded.warnings))
        for p in found
    ]


@contextlib.contextmanager
def engine(desired: DesiredState, request: Request, emit: Emit, transport: Transport | None = None) -> Iterator[Engine]:
    """The engine over a fresh pool, which is closed at the end. Raises Usage for a node or target that is not declared."""
    selection = select(desired, host_names(request.on), request.target)
    pool = Pool(transport or SshTransport(), desired.nodes)
    try:
        yield Engine(desired, pool, selection, emit)
    finally:
        pool.close()


def host_names(lists: Iterable[str]) -> list[str]:
    """All names of the host lists. Raises UsageError for what is none."""
    return [name for hosts in lists for name in _expand(hosts)]


def _expand(hosts: str) -> tuple[str, ...]:
    try:
        return tuple(expand(hosts))
    except ValueError:
        raise click.UsageError(notes.host_list(hosts)) from None


def source_of(request: Request) -> str:
    """The repository or folder, absolute: what a plan file names."""
    return str(Path(request.path).absolute())
