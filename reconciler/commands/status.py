"""`reconcile status` and `reconcile history`: what the journal knows, each line with its age."""

from __future__ import annotations

import dataclasses
import sys
import time

import click

from reconciler import config
from reconciler import status as views
from reconciler.apply import journal
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.errors import Usage
from reconciler.render import status as render
from reconciler.render.style import style_for


@click.command()
@common.state_dir
@common.as_json
def status(state_dir: str | None, as_json: bool) -> int:
    """Show each node's last plan and outcome, and how old they are. Asks no node."""
    found = views.nodes(journal.read(StateDir(config.load(state_dir).state_dir).journal))
    now = time.time()
    if as_json:
        common.print_json({"asOf": now, "nodes": {name: dataclasses.asdict(node) for name, node in found.items()}})
        return 0
    for line in render.nodes(found, now, style_for(sys.stdout)):
        click.echo(line)
    return 0


@click.command()
@click.argument("plan", required=False)
@common.state_dir
@common.as_json
def history(plan: str | None, state_dir: str | None, as_json: bool) -> int:
    """List what was applied, newest first; with a PLAN id, every record of that apply."""
    records = journal.read(StateDir(config.load(state_dir).state_dir).journal)
    if plan:
        mine = [record for record in records if record.get("plan") == plan]
        if not mine:
            raise Usage("NoSuchPlan", name=plan)
        if as_json:
            common.print_json(mine)
        else:
            for line in render.records(mine):
                click.echo(line)
        return 0
    applies = views.applies(records)
    if as_json:
        common.print_json([dataclasses.asdict(apply) for apply in applies])
        return 0
    for line in render.applies(applies, time.time(), style_for(sys.stdout)):
        click.echo(line)
    return 0
