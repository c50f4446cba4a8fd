"""What a controller answers over its socket, shown as if it were done here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reconciler.commands import base
from reconciler.controller import protocol
from reconciler.errors import ControllerError
from reconciler.events import Event
from reconciler.plan import wire
from reconciler.render import outcome, push
from reconciler.render import plan as render_plan
from reconciler.render.progress import Progress
from reconciler.render.reasons import sentence
from reconciler.render.style import style_for


def show(state_dir: Path, request: Mapping[str, Any], as_json: bool) -> int:
    """Ask the controller of `state_dir`, show each event as it comes, and return the exit status that it ends with.

    Raises ControllerError.
    """
    with Progress() as progress:
        for message in protocol.ask(state_dir / protocol.SOCKET, request):
            if as_json:
                base.print_line(message)
            elif "event" in message:
                for line in _event(message["event"], progress):
                    click.echo(line)
                sys.stdout.flush()
            if "end" in message:
                end = message["end"]
                for line in [] if as_json else _end(end):
                    click.echo(line)
                return int(end["exit"])
    raise ControllerError("ControllerLost", path=str(state_dir))


def _event(found: Mapping[str, Any], progress: Progress) -> list[str]:
    """Whole lines for what is to be kept; what only goes on is told to `progress`."""
    style = style_for(sys.stdout)
    kind = str(found.get("event", ""))
    try:
        if "omitted" in found:
            return [push.OMITTED] if kind == "planned" else []
        if kind == "planned":
            return render_plan.render(wire.plan(found), style)
        if kind == "finished":
            return ["", *outcome.render(wire.outcomes(found["nodes"]), style)]
        rest = {name: value for name, value in found.items() if name not in ("event", "time", "node")}
        progress(Event(kind, str(found.get("node", "")), rest, float(found.get("time", 0.0))))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ControllerError("EventGarbled", name=kind) from None
    return []


def _end(end: Mapping[str, Any]) -> list[str]:
    data = end.get("data") or {}
    reason = end.get("reason") or ""
    if reason == "Detached":
        return [push.follow(str(data.get("id", "")))]
    return [sentence(str(reason), data)] if reason else []


def unseen(why: str, as_json: bool) -> None:
    """The controller could not be told, or was lost: the push stands."""
    if as_json:
        base.print_line({"end": {"exit": 0, "reason": "Unseen", "data": {"message": why}}})
    else:
        click.echo(f"{why}\n{push.UNSEEN}")
