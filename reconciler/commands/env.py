"""`reconcile env`: builds of Python environments on the nodes."""

from __future__ import annotations

import contextlib
import getpass
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from reconciler import config, environments
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.commands.group import Group
from reconciler.engine import Applied, Engine
from reconciler.environments import Target
from reconciler.facts.environment_builds import Builds
from reconciler.model.fact import Fact, Value
from reconciler.model.observed import Failure
from reconciler.model.outcome import first
from reconciler.render import data, outcome
from reconciler.render import environments as render
from reconciler.render.style import style_for


@click.group(cls=Group)
def env() -> None:
    """Look after the builds of Python environments on the nodes."""


where = common.options(
    click.argument("path", default=".", metavar="[PATH]"),
    common.commit,
    common.cluster,
    common.on,
)


@env.command("list")
@where
@common.as_json
def listing(**wanted: Any) -> int:
    """List every build: its size and age, which is linked, who uses it, what is damaged. Changes nothing."""
    request = common.Request(**wanted)
    desired, _ = common.desired_state(request)
    with common.progress(request.as_json) as emit, common.engine(desired, request, emit) as engine:
        found = environments.look(engine)
    if request.as_json:
        common.print_json({"nodes": render.as_data(found)})
    else:
        click.echo("\n".join(render.listing(found, style_for(sys.stdout))))
    return first({0, *(_code(one) for one in found.values())})


def _code(seen: Mapping[str, Fact[Builds]] | Failure) -> int:
    """The exit status for what one node said; what could not be read is no whole answer."""
    if isinstance(seen, Failure):
        return 4 if seen.kind == "unreachable" else 3
    return 0 if all(isinstance(here, Value) for here in seen.values()) else 3


@env.command()
@click.argument("name")
@where
@click.option("--to", metavar="BUILD", help="This build; default: the newest whole one of another lock.")
@common.state_dir
@common.as_json
def rollback(name: str, to: str | None, state_dir: str | None, **wanted: Any) -> int:
    """Let environment NAME lead to an earlier build, on all selected nodes at once. Needs no network but the nodes.

    What Git wants is then held back until its lock changes. Going --to a build of that very lock takes this back.
    """
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    with _working(state_dir, wanted) as (engine, act):
        return _show(act(environments.rollback(engine, name, to, by), None), bool(wanted["as_json"]))


@env.command()
@click.argument("name")
@where
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Builds that stay; default: the manifest's.")
@common.state_dir
@common.as_json
def gc(name: str, keep: int | None, state_dir: str | None, **wanted: Any) -> int:
    """Remove builds of environment NAME beyond the last ones. One that is linked, used or held always stays."""
    with _working(state_dir, wanted) as (engine, act):
        before = render.as_data(environments.look(engine))
        code = _show(act(environments.collection(engine, name), keep), bool(wanted["as_json"]))
        after = render.as_data(environments.look(engine))
    for line in render.removed(before, after):
        click.echo(line, err=bool(wanted["as_json"]))
    return code


Act = Callable[[Mapping[str, Target], int | None], Applied]


@contextlib.contextmanager
def _working(state_dir: str | None, wanted: Mapping[str, Any]) -> Iterator[tuple[Engine, Act]]:
    """The engine, and what carries targets out with this controller's records."""
    request, settings = common.Request(**wanted), config.load(state_dir)
    state = StateDir(settings.state_dir)
    with state.locked():
        desired, _ = common.desired_state(request)
        journal = Journal(state.journal)
        try:
            with common.progress(request.as_json) as emit, common.engine(desired, request, emit) as engine:
                holder = state.holder()
                yield engine, lambda t, keep: environments.carry_out(engine, t, keep, journal, holder, settings.lease_ttl)
        finally:
            journal.close()


def _show(applied: Applied, as_json: bool) -> int:
    if as_json:
        common.print_json({"exit": applied.exit, "nodes": data.outcomes(applied.outcomes)})
    else:
        click.echo("\n".join(outcome.render(applied.outcomes, style_for(sys.stdout))))
    return applied.exit
