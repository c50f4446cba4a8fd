"""What a controller answers over its socket, shown as if it were done here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from reconciler.commands import base
from reconciler.controller import protocol
from reconciler.errors import ControllerError
from reconciler.events import Event
from reconciler.model.outcome import NodeOutcome
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
        view = View(progress)
        for message in protocol.ask(state_dir / protocol.SOCKET, request):
            if as_json:
                base.print_line(message)
            else:
                for line in view.event(message["event"]) if "event" in message else view.end(message["end"]):
                    click.echo(line)
                sys.stdout.flush()
            if "end" in message:
                return int(message["end"]["exit"])
    raise ControllerError("ControllerLost", path=str(state_dir))


@dataclass
class View:
    """A stream of events as lines that are kept; what only goes on is told to `progress`."""

    progress: Progress
    outcomes: dict[str, NodeOutcome] = field(default_factory=dict)

    def event(self, found: Mapping[str, Any]) -> list[str]:
        """Raises ControllerError(EventGarbled)."""
        kind = str(found.get("event", ""))
        try:
            if "omitted" in found:
                return [push.OMITTED] if kind == "planned" else []
            if kind == "planned":
                return render_plan.render(wire.plan(found), style_for(sys.stdout))
            if kind == "finished":
                self.outcomes = wire.outcomes(found["nodes"])
            elif kind == "node-finished":
                self.outcomes[str(found["node"])] = wire.outcome(found)
            rest = {name: value for name, value in found.items() if name not in ("event", "time", "node")}
            self.progress(Event(kind, str(found.get("node", "")), rest, float(found.get("time", 0.0))))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ControllerError("EventGarbled", name=kind) from None
        return []

    def end(self, ended: Mapping[str, Any]) -> list[str]:
        """How the nodes ended, as far as it was heard, then why the controller says no more."""
        data, reason = ended.get("data") or {}, str(ended.get("reason") or "")
        out = ["", *outcome.render(self.outcomes, style_for(sys.stdout))] if self.outcomes else []
        if reason == "Detached":
            return [*out, push.follow(str(data.get("id", "")))]
        return [*out, sentence(reason, data)] if reason else out


def unseen(why: str, as_json: bool) -> None:
    """The controller could not be told, or was lost: the push stands."""
    if as_json:
        base.print_line({"end": {"exit": 0, "reason": "Unseen", "data": {"message": why}}})
    else:
        click.echo(f"{why}\n{push.UNSEEN}")
