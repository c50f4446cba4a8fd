"""What the commands that look at nodes share: options, the desired state, the pool of channels."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.engine import Engine
from reconciler.errors import ReconcileError
from reconciler.events import Emit, Event
from reconciler.model.desired import DesiredState
from reconciler.model.hostlist import expand
from reconciler.plan.select import select
from reconciler.pool import Pool
from reconciler.render import data, notes
from reconciler.render.problems import problem_text
from reconciler.render.progress import Progress
from reconciler.render.text import count
from reconciler.source import Loaded, load_desired
from reconciler.transport.base import Transport
from reconciler.transport.ssh import SshTransport

F = TypeVar("F", bound=Callable[..., Any])


class Refused(ReconcileError):
    """The manifests are not right; what is wrong was already said."""


def options(*chosen: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which --help shall list them."""

    def decorate(function: F) -> F:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


commit = click.option("--commit", metavar="SHA", help="This commit instead of HEAD.")
cluster = click.option("--cluster", metavar="NAME", help="Which cluster, where the repository has several.")
on = click.option("--on", multiple=True, metavar="NODES", help="Only these nodes: gpu01, or gpu[01-04,07].")
target = click.option("--target", multiple=True, metavar="KIND[/NAME]", help="Only these resources: Package, or Package/tmux.")
as_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
# for commands whose output is JSON in any case: --json may be said everywhere
always_json = click.option("--json", is_flag=True, expose_value=False, help="What is printed in any case.")
state_dir = click.option("--state-dir", metavar="DIR", help="The controller's records (RECONCILE_STATE_DIR).")


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


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, sort_keys=False, default=str))


def stream(event: Event) -> None:
    """One event as one line on stdout, at once."""
    sys.stdout.write(json.dumps(data.event(event), default=str) + "\n")
    sys.stdout.flush()


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
