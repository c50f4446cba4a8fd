"""What people say to a controller and ask of it: suspend, resume, events, wait."""

from __future__ import annotations

import getpass
import json
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

import click

from reconciler import config
from reconciler.apply import journal
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.controller import board, protocol
from reconciler.errors import ControllerError, Usage
from reconciler.model import durations
from reconciler.render import controller as render
from reconciler.render import status as render_status


def place(state_dir: str | None) -> StateDir:
    return StateDir(config.load(state_dir).state_dir)


def ask(state: StateDir, request: Mapping[str, Any], as_json: bool, show: bool = True) -> tuple[list[Any], Mapping[str, Any]]:
    """Events and end of one request; each event is printed as it comes where `show`. Raises ControllerError."""
    events, ended = [], {}
    with closing(protocol.ask(state.root / protocol.SOCKET, request)) as messages:  # type: ignore[type-var]
        for found in messages:
            if "end" in found:
                ended = found["end"]
            else:
                events.append(found["event"])
                line = json.dumps(found["event"]) if as_json else render.line(found["event"])
                if show and line:
                    sys.stdout.write(line + "\n")
                    sys.stdout.flush()
    return events, ended


def tell(ended: Mapping[str, Any], as_json: bool) -> int:
    """Print how a request ended; its exit status."""
    said = render.why(ended["reason"], ended["data"])
    if as_json:
        click.echo(json.dumps({"exit": ended["exit"], "reason": ended["reason"], "message": said, "data": ended["data"]}))
    elif said:
        click.echo(said, err=ended["exit"] != 0)
    return int(ended["exit"])


def message(reason: str, exit_code: int = 0, **data: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = protocol.end(exit_code, reason, **data)["end"]
    return found


@click.command()
@common.on
@click.option("--all", "everywhere", is_flag=True, help="The whole cluster.")
@click.option("--reason", required=True, metavar="TEXT", help="Why: it is shown wherever the nodes are.")
@click.option("--until", required=True, metavar="TIME", help="When it ends by itself: 2h, 1d12h, 2027-01-31T18:00.")
@common.state_dir
@common.as_json
def suspend(on: tuple[str, ...], everywhere: bool, reason: str, until: str, state_dir: str | None, as_json: bool) -> int:
    """Let the controller leave nodes as they are, until a time. They are never shown as ready meanwhile."""
    scope = _scope(on, everywhere)
    return _say(place(state_dir), {"op": "suspend", "scope": scope, "reason": reason, "until": _moment(until)}, as_json)


@click.command()
@common.on
@click.option("--all", "everywhere", is_flag=True, help="The whole cluster, and every node of it.")
@common.state_dir
@common.as_json
def resume(on: tuple[str, ...], everywhere: bool, state_dir: str | None, as_json: bool) -> int:
    """End a suspension, and try again what was given up because somebody else kept changing it."""
    return _say(place(state_dir), {"op": "resume", "scope": _scope(on, everywhere)}, as_json)


def _scope(on: tuple[str, ...], everywhere: bool) -> list[str]:
    """The nodes, none for all. Raises Usage where it is not clear what is meant."""
    names = common.host_names(on)
    if bool(names) == everywhere:
        raise Usage("OneOf", options=["--on", "--all"])
    return names


def _moment(until: str) -> float:
    """Unix seconds. Raises Usage."""
    span = durations.seconds(until)
    if span is not None:
        return round(time.time() + span, 3)
    try:
        return datetime.fromisoformat(until).timestamp()
    except ValueError:
        raise Usage("WrongSetting", name="--until", value=until, allowed=f"{durations.ALLOWED}, or 2027-01-31T18:00") from None


def _say(state: StateDir, request: Mapping[str, Any], as_json: bool) -> int:
    """To the controller that runs; else into its journal, for the next one."""
    try:
        return tell(ask(state, request, as_json)[1], as_json)
    except ControllerError as e:
        if e.reason != "NoController":
            raise
    declared = {name.partition("/")[2] for name in board.load(state.conditions) if name.startswith("node/")}
    unknown = [name for name in request["scope"] if declared and name not in declared]
    if request["op"] == "suspend" and (unknown or not request["reason"].strip() or request["until"] <= time.time()):
        return tell(message("NotSuspended", 1, nodes=unknown), as_json)
    with state.locked():
        opened = journal.Journal(state.journal)
        try:
            fields = {k: v for k, v in request.items() if k != "op"}
            opened.append("suspended" if request["op"] == "suspend" else "resumed", **fields, by=getpass.getuser())
        finally:
            opened.close()
    ended = {"suspend": "NowSuspended", "resume": "Resumed"}[request["op"]]
    return tell(message(ended, nodes=request["scope"], until=request.get("until")), as_json)


@click.command()
@click.option("--follow", is_flag=True, help="Go on until interrupted.")
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="N", help="Only after the event with this number.")
@common.state_dir
@common.as_json
def events(follow: bool, since: int, state_dir: str | None, as_json: bool) -> int:
    """Show what happened in the controller; where none runs, the records of its journal."""
    state = place(state_dir)
    try:
        return int(ask(state, {"op": "events", "since": since, "follow": follow}, as_json)[1]["exit"])
    except ControllerError as e:
        if e.reason != "NoController" or follow:
            raise
    records = [r for r in journal.read(state.journal) if r["seq"] > since]
    for line in [json.dumps(r) for r in records] if as_json else render_status.records(records):
        click.echo(line)
    return 0


@click.command()
@click.option("--for", "condition", required=True, metavar="CONDITION", help="Ready, Stalled=False, ...; =True is meant.")
@common.on
@click.option("--timeout", metavar="SPAN", help="Exit 1 where it did not come by then; default: for ever.")
@common.state_dir
@common.as_json
def wait(condition: str, on: tuple[str, ...], timeout: str | None, state_dir: str | None, as_json: bool) -> int:
    """Wait until a condition holds for the cluster, or for all nodes that are named."""
    span = durations.seconds(timeout) if timeout else None
    if timeout and span is None:
        raise Usage("WrongSetting", name="--timeout", value=timeout, allowed=durations.ALLOWED)
    request = {"op": "wait", "condition": condition, "nodes": common.host_names(on), "timeout": span}
    return tell(ask(place(state_dir), request, as_json)[1], as_json)
