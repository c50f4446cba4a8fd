"""`reconcile status` and `reconcile history`: what the journal knows, each line with its age."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import click

from reconciler import config
from reconciler import status as views
from reconciler.apply import journal
from reconciler.apply.statedir import StateDir
from reconciler.commands import ask, common
from reconciler.controller import board
from reconciler.errors import ControllerError, Usage
from reconciler.render import controller as render_controller
from reconciler.render import status as render
from reconciler.render.style import style_for

LOOK = 0.5  # seconds between two looks of --watch


@click.command()
@click.option("--watch", is_flag=True, help="Show it again whenever something happens, until interrupted.")
@click.option("--follow", metavar="ID", help="Show one turn of the controller to its end: by its id, or by its revision.")
@common.state_dir
@common.as_json
def status(watch: bool, follow: str | None, state_dir: str | None, as_json: bool) -> int:
    """Show the conditions that the controller holds, and each node's last plan and outcome with their age. Asks no node."""
    state = ask.place(state_dir)
    if watch and follow:
        raise Usage("OptionsApart", option="--watch", other="--follow")
    if follow:
        return ask.tell(ask.ask(state, {"op": "follow", "id": follow}, as_json)[1], as_json)
    number = _show(state, as_json)
    while watch:
        number = _next(state, number)
        click.echo("")
        _show(state, as_json)
    return 0


def _next(state: StateDir, number: int) -> int:
    """The number of the newest event, once there is one after `number`."""
    while True:
        time.sleep(LOOK)  # a person reads no faster
        ended = ask.ask(state, {"op": "events", "since": number}, True, show=False)[1]
        if ended["data"]["last"] > number:
            return int(ended["data"]["last"])


def _show(state: StateDir, as_json: bool) -> int:
    """Print it once; the number of the newest event, 0 where no controller runs."""
    found, now = views.nodes(journal.read(state.journal)), time.time()
    subjects, about = _conditions(state)
    if as_json:
        nodes = {name: dataclasses.asdict(node) for name, node in found.items()}
        common.print_json({"asOf": now, "nodes": nodes, "controller": about, "subjects": subjects})
    else:
        style = style_for(sys.stdout)
        lines = render_controller.conditions(subjects, about, now, style) if subjects else []
        click.echo("\n".join([*lines, *([""] if lines else []), *render.nodes(found, now, style)]))
    return int(about["last"]) if about["running"] else 0


def _conditions(state: StateDir) -> tuple[dict[str, Any], dict[str, Any]]:
    """Subjects and what else the controller says; where it does not run, what it wrote last."""
    try:
        events, ended = ask.ask(state, {"op": "status"}, True, show=False)
    except ControllerError as e:
        if e.reason != "NoController":
            raise
        written = board.stored(state.conditions)
        return (written["subjects"], {"running": False, "asOf": written["asOf"]}) if written else ({}, {"running": False})
    return {event["subject"]: event for event in events}, {"running": True, **ended["data"]}


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
