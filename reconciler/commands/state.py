"""`reconcile state`: the controller's own records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reconciler import config
from reconciler.apply.adopt import recall
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.commands.group import Group
from reconciler.errors import Usage
from reconciler.model.observed import Failure
from reconciler.render import notes


@click.group(cls=Group)
def state() -> None:
    """Look after the controller's own records."""


@state.command()
@click.argument("path", default=".", metavar="[PATH]")
@common.commit
@common.cluster
@common.on
@click.option("--mirror", metavar="URL", help="A mirror of state.git to take the history from.")
@common.state_dir
@common.as_json
def rebuild(mirror: str | None, state_dir: str | None, **wanted: Any) -> int:
    """Recreate a lost state directory from what the nodes remember, and the history from its mirror.

    The nodes are only read. Refused while there still is a journal.
    """
    request = common.Request(**wanted)
    desired, _ = common.desired_state(request)
    place = StateDir(config.load(state_dir).state_dir)
    with place.locked():
        if place.journal.exists():
            raise Usage("JournalExists", path=str(place.journal))
        with common.progress(request.as_json) as emit, common.engine(desired, request, emit) as engine:
            found = engine.pool.each(engine.names(), lambda n: recall(engine.pool.channel(n), all=True))
        failures = {name: why for name, why in found.items() if isinstance(why, Failure)}
        steps = _write(place, desired.cluster, {n: r for n, r in found.items() if not isinstance(r, Failure)})
        if mirror:
            _mirror(place, mirror)
    if request.as_json:
        common.print_json(
            {"nodes": len(found) - len(failures), "steps": steps, "failures": {n: w.reason for n, w in failures.items()}}
        )
    else:
        click.echo("\n".join([notes.rebuilt(len(found) - len(failures), steps), *notes.failures(failures)]))
    kinds = {why.kind for why in failures.values()}
    return 3 if kinds - {"unreachable"} else 4 if kinds else 0


def _write(place: StateDir, cluster: str, remembered: Mapping[str, Mapping[str, Any]]) -> int:
    journal = Journal(place.journal)
    try:
        journal.append("rebuilt", cluster=cluster, nodes=sorted(remembered))
        steps = 0
        for name, records in sorted(remembered.items()):
            for step in records["steps"]:
                about = {k: step[k] for k in ("plan", "token", "step", "title", "state", "wall")}
                journal.append("recovered", node=name, cluster=cluster, **about)
                steps += 1
            specs = {resource: entry["spec"] for resource, entry in records["inventory"].items()}
            if specs:
                journal.append("converged", node=name, plan="rebuilt", resources=specs)
        return steps
    finally:
        journal.close()


def _mirror(place: StateDir, url: str) -> None:
    import git

    if url.startswith("-"):
        raise Usage("NoSuchPath", path=url)
    try:
        git.Repo.clone_from(url, str(place.history), multi_options=["--mirror"])
    except git.exc.GitError as e:
        raise Usage("Unreadable", path=url, detail=str(e).splitlines()[-1]) from None
