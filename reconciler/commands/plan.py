"""`reconcile plan` and `reconcile drift`: look, compare, say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from reconciler import config, status
from reconciler.apply import journal
from reconciler.apply.statedir import StateDir, write_atomically
from reconciler.commands import common
from reconciler.engine import record_plan
from reconciler.errors import LockHeld
from reconciler.model.observed import Known
from reconciler.model.outcome import first
from reconciler.model.plan import Plan, Reason
from reconciler.render import data, notes
from reconciler.render import plan as render_plan
from reconciler.render.style import style_for
from reconciler.transport.base import Transport
from reconciler.transport.record import RecordingTransport
from reconciler.transport.replay import ReplayTransport
from reconciler.transport.ssh import SshTransport

shared = common.options(
    click.argument("path", default=".", metavar="[PATH]"),
    common.commit,
    click.option("--worktree", is_flag=True, help="The files as they are on disk, committed or not."),
    common.cluster,
    common.on,
    common.target,
    click.option("--from", "recordings", metavar="DIR", help="From recorded nodes instead of real ones: no network, no root."),
    common.state_dir,
    common.as_json,
)


@click.command()
@shared
@click.option("--out", metavar="FILE", help="Save the plan for `reconcile apply FILE`.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when there is something to do or something held.")
@click.option("--record", metavar="DIR", help="Also record what the nodes answered, redacted, for --from.")
def plan(
    out: str | None, detailed_exitcode: bool, record: str | None, recordings: str | None, state_dir: str | None, **wanted: Any
) -> int:
    """Show what has to happen so that the nodes match Git. Changes nothing.

    PATH is a Git repository, a folder in one, or a bare repository; its HEAD commit is what counts.
    """
    request = common.Request(**wanted)
    found = make(request, recordings, state_dir, record)
    if out:
        text = json.dumps(data.plan(found, common.source_of(request)), indent=1, default=str)
        write_atomically(Path(out).absolute(), text.encode())
    show(found, request, out)
    return _exit(found, changes=detailed_exitcode)


@click.command()
@shared
def drift(recordings: str | None, state_dir: str | None, **wanted: Any) -> int:
    """Show what changed on the nodes although Git did not. Exit 2 when there is drift, or something held."""
    request = common.Request(**wanted)
    found = make(request, recordings, state_dir)
    drifted = [c for node in found.nodes.values() for c in node.changes if c.reason is Reason.DRIFT]
    pending = sum(1 for node in found.nodes.values() for c in node.writes() if c.reason is Reason.GIT)
    if request.as_json:
        common.print_json({"drift": len(drifted), **data.plan(found, common.source_of(request))})
    else:
        style = style_for(sys.stdout)
        click.echo(notes.drift(len(drifted), pending, style))
        for line in render_plan.render(found, style, only=Reason.DRIFT)[1:]:
            click.echo(line)
    return _exit(found, changes=True, only_drift=True)


def make(request: common.Request, recordings: str | None, state_dir: str | None, record: str | None = None) -> Plan:
    """The plan, noted in the journal where there is one to be had: from recordings nothing is noted."""
    desired, _ = common.desired_state(request)
    transport = _transport(recordings)
    recorder = RecordingTransport(transport) if record else None
    state = StateDir(config.load(state_dir).state_dir)
    known = Known() if recordings else status.known(journal.read(state.journal))
    with common.progress(request.as_json) as emit, common.engine(desired, request, emit, recorder or transport) as engine:
        found = engine.plan(known)
    if recorder and record:
        recorder.save(Path(record))
    if not recordings:
        _note(state, found)
    return found


def _transport(recordings: str | None) -> Transport:
    if recordings:
        return ReplayTransport(Path(recordings))
    return SshTransport()


def _note(state: StateDir, found: Plan) -> None:
    """For `status`. An apply at work keeps the journal for itself; its own plan is noted there then."""
    try:
        with state.locked():
            opened = journal.Journal(state.journal)
            try:
                record_plan(opened, found)
            finally:
                opened.close()
    except LockHeld:
        click.echo(notes.NOT_NOTED, err=True)


def show(found: Plan, request: common.Request, out: str | None) -> None:
    if request.as_json:
        common.print_json(data.plan(found, common.source_of(request)))
        return
    for line in render_plan.render(found, style_for(sys.stdout)):
        click.echo(line)
    if out:
        click.echo(f"\n{notes.saved_as(out)}")


def _exit(found: Plan, *, changes: bool, only_drift: bool = False) -> int:
    codes = {0}
    for node in found.nodes.values():
        if node.failure:
            codes.add(4 if node.failure.kind == "unreachable" else 3)
        written = [c for c in node.writes() if not only_drift or c.reason is Reason.DRIFT]
        if changes and (written or node.held()):
            codes.add(2)
    return first(codes)
