"""`reconcile snapshot`: recorded states of the nodes, in the controller's own Git history."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import click

from reconciler import config
from reconciler.apply.history import History
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.commands.group import Group
from reconciler.render import notes
from reconciler.render.text import count, duration, safe, table
from reconciler.snapshots import take as take_snapshot


@click.group(cls=Group)
def snapshot() -> None:
    """Take, list and show recorded states of the nodes."""


@snapshot.command()
@click.argument("path", default=".", metavar="[PATH]")
@common.commit
@common.cluster
@common.on
@click.option("--message", default="snapshot", help="Why, for the list.")
@common.state_dir
@common.as_json
def take(message: str, state_dir: str | None, **wanted: Any) -> int:
    """Look at the nodes whole and record what changed since the last snapshot."""
    request = common.Request(**wanted)
    desired, _ = common.desired_state(request)
    state = StateDir(config.load(state_dir).state_dir)
    with state.locked(), common.progress(request.as_json) as emit, common.engine(desired, request, emit) as engine:
        commit, failures = take_snapshot(engine, History(state.history), engine.names(), message, asked=True)
    if request.as_json:
        common.print_json({"commit": commit, "failures": {name: why.reason for name, why in failures.items()}})
    else:
        click.echo("\n".join([notes.recorded(commit), *notes.failures(failures)]))
    kinds = {why.kind for why in failures.values()}
    return 3 if kinds - {"unreachable"} else 4 if kinds else 0


@snapshot.command(name="list")
@common.state_dir
@common.as_json
def list_(state_dir: str | None, as_json: bool) -> int:
    """List what was recorded, newest first."""
    entries = History(StateDir(config.load(state_dir).state_dir).history).entries()
    if as_json:
        common.print_json([dataclasses.asdict(entry) for entry in entries])
        return 0
    rows = [("snapshot", "when", "nodes", "why")]
    for entry in entries:
        age = f"{duration(max(0.0, time.time() - entry.time))} ago"
        rows.append((entry.id[:8], age, safe(", ".join(entry.changed), 60), safe(entry.message, 60)))
    click.echo(count(len(entries), "snapshot"))
    click.echo("\n".join(table(rows)))
    return 0


@snapshot.command()
@click.argument("snapshot_id", default="latest", metavar="[SNAPSHOT]")
@click.argument("node", required=False)
@common.state_dir
def show(snapshot_id: str, node: str | None, state_dir: str | None) -> int:
    """Print the recorded state at SNAPSHOT (an id from the list, or `latest`), of one NODE or of all, as JSON."""
    common.print_json(History(StateDir(config.load(state_dir).state_dir).history).show(snapshot_id, node))
    return 0
