"""`reconcile apply`: close the difference between Git and the nodes."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import click

from reconciler import config
from reconciler.apply.history import History
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.apply.work import Stop
from reconciler.commands import common
from reconciler.engine import Applied, Engine
from reconciler.errors import Usage
from reconciler.events import Emit, Event
from reconciler.model.outcome import End
from reconciler.plan import saved as saved_plan
from reconciler.plan.stale import covered
from reconciler.render import data, notes, outcome
from reconciler.render import plan as render_plan
from reconciler.render.style import style_for
from reconciler.snapshots import take


@click.command()
@click.argument("what", default=".", metavar="[PATH | PLANFILE]")
@common.commit
@common.cluster
@common.on
@common.target
@common.state_dir
@common.as_json
def apply(what: str, state_dir: str | None, **wanted: Any) -> int:
    """Make the nodes match Git, or carry out a plan that `plan --out` saved.

    Canary first, then side by side within the manifest's maxUnavailable. A second apply makes 0 changes.
    """
    saved = _saved(what)
    request = _request(what, saved, wanted)
    settings = config.load(state_dir)
    state = StateDir(settings.state_dir)
    stop = Stop()
    with state.locked(), signals(stop):
        desired, loaded = common.desired_state(request)
        common.say_unpinned(loaded)
        if desired.revision.commit is None:
            raise Usage("NeedsCommit", path=request.path)
        journal = Journal(state.journal)
        try:
            with (
                common.progress(request.as_json, common.stream) as emit,
                common.engine(desired, request, showing_plan(emit, request.as_json)) as engine,
            ):
                applied = engine.apply(journal, state.holder(), saved, stop, settings.lease_ttl)
                _record(engine, applied, History(state.history))
        finally:
            journal.close()
    show(applied, request.as_json)
    return applied.exit


def _saved(what: str) -> Mapping[str, Any] | None:
    """The plan in `what` where that is a file; None where it is a folder."""
    path = Path(what)
    if not path.is_file():
        return None
    try:
        return saved_plan.parse(path.read_text(encoding="utf-8"), what)
    except (OSError, UnicodeDecodeError) as e:
        raise Usage("NotAPlanText", path=what, detail=str(e)) from None


def _request(what: str, saved: Mapping[str, Any] | None, wanted: dict[str, Any]) -> common.Request:
    if saved is None:
        return common.Request(what, **wanted)
    if given := [name for name in ("commit", "cluster", "on", "target") if wanted[name]]:
        raise click.UsageError(notes.saved_plan_options(given))
    return common.Request(
        saved["source"],
        cluster=saved["cluster"],
        on=covered(saved) or tuple(saved["selection"]["nodes"]),
        target=tuple(saved["selection"]["targets"]),
        as_json=wanted["as_json"],
    )


@contextlib.contextmanager
def signals(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets running steps be and begins no other; a second one ends at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.set(End.INTERRUPTED)
        click.echo(notes.INTERRUPTED, err=True)

    former = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def showing_plan(emit: Emit, as_json: bool) -> Emit:
    """The plan is shown before its first step begins."""

    def watch(event: Event) -> None:
        if event.kind != "planned":
            emit(event)
        elif as_json:
            emit(Event("planned", data=data.plan(event.data["plan"], ""), time=event.time))
        else:
            for line in render_plan.render(event.data["plan"], style_for(sys.stdout)):
                click.echo(line)
            sys.stdout.flush()

    return watch


def _record(engine: Engine, applied: Applied, history: History) -> None:
    """What the changed nodes look like now, for the history; a node that is lost by now is left out."""
    changed = [name for name, outcome in applied.outcomes.items() if outcome.changed]
    if changed:
        take(engine, history, changed, f"apply {applied.plan.id}", asked=False)


def show(applied: Applied, as_json: bool) -> None:
    if as_json:
        common.stream(Event("finished", data={"exit": applied.exit, "nodes": data.outcomes(applied.outcomes)}))
        return
    click.echo("")
    for line in outcome.render(applied.outcomes, style_for(sys.stdout)):
        click.echo(line)
