"""`reconcile plan` and `reconcile drift`: look, compare, say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler import config, status
from reconciler.apply import journal
from reconciler.apply.statedir import StateDir, write_atomically
from reconciler.commands import common
from reconciler.engine import record_plan
from reconciler.errors import LockHeld, Usage
from reconciler.model.observed import Known
from reconciler.model.outcome import first
from reconciler.model.plan import Plan, Reason
from reconciler.render import data, markdown, notes
from reconciler.render import plan as render_plan
from reconciler.render.style import style_for
from reconciler.transport.base import Transport
from reconciler.transport.ssh import SshTransport

if TYPE_CHECKING:
    from reconciler.transport.record import RecordingTransport

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
@click.option("--markdown", "as_markdown", is_flag=True, help="As a comment on a pull request: docs/ci.md has recipes.")
@click.option("--record", metavar="DIR", help="Also record what the nodes answered, redacted, for --from.")
def plan(
    out: str | None,
    detailed_exitcode: bool,
    as_markdown: bool,
    record: str | None,
    recordings: str | None,
    state_dir: str | None,
    **wanted: Any,
) -> int:
    """Show what has to happen so that the nodes match Git. Changes nothing.

    PATH is a Git repository, a folder in one, or a bare repository; its HEAD commit is what counts.
    """
    request = common.Request(**wanted)
    if as_markdown and request.as_json:
        raise Usage("OptionsApart", option="--markdown", other="--json")
    found = make(request, recordings, state_dir, record)
    if out:
        text = json.dumps(data.plan(found, common.source_of(request)), indent=1, default=str)
        write_atomically(Path(out).absolute(), text.encode())
    show(found, request, out, as_markdown)
    return _exit(found, changes=detailed_exitcode)


@click.command()
@shared
def drift(recordings: str | None, state_dir: str | None, **wanted: Any) -> int:
    """Show what changed on the nodes although Git did not. Exit 2 when there is drift, or something held."""
    request = common.Request(**wanted)
    found = make(request, recordings, state_dir)
    drifted = [c for node in found.nodes.values() for c in node.changes if c.reason is Reason.DRIFT]
    pending = sum(1 for node in found.nodes.values() for c in node.writes() if c.reason is not Reason.DRIFT)
    if request.as_json:
        common.print_json({"drift": len(drifted), **data.plan(found, common.source_of(request))})
    else:
        style = style_for(sys.stdout)
        click.echo(notes.drift(len(drifted), found.holds, pending, style))
        for line in render_plan.render(found, style, only=Reason.DRIFT)[1:]:
            click.echo(line)
    return _exit(found, changes=True, only_drift=True)


def make(request: common.Request, recordings: str | None, state_dir: str | None, record: str | None = None) -> Plan:
    """The plan, noted in the journal where there is one to be had: from recordings nothing is noted."""
    desired, loaded = common.desired_state(request)
    common.say_unpinned(loaded)
    transport = _transport(recordings)
    recorder = _recorder(transport) if record else None
    state = StateDir(config.load(state_dir).state_dir)
    known = Known() if recordings else status.known(journal.read(state.journal))
    with common.progress(request.as_json) as emit, common.engine(desired, request, emit, recorder or transport) as engine:
        found = engine.plan(known)
    if recorder and record:
        recorder.save(Path(record))
    if not recordings:
        _note(state, found)
    return found


def _recorder(transport: Transport) -> RecordingTransport:
    from reconciler.transport.record import RecordingTransport

    return RecordingTransport(transport)


def _transport(recordings: str | None) -> Transport:
    if recordings:
        from reconciler.transport.replay import ReplayTransport

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


def show(found: Plan, request: common.Request, out: str | None, as_markdown: bool) -> None:
    if request.as_json:
        common.print_json(data.plan(found, common.source_of(request)))
        return
    for line in markdown.plan(found) if as_markdown else render_plan.render(found, style_for(sys.stdout)):
        click.echo(line)
    if out:
        click.echo(notes.saved_as(out) if as_markdown else f"\n{notes.saved_as(out)}", err=as_markdown)


def _exit(found: Plan, *, changes: bool, only_drift: bool = False) -> int:
    codes = {0}
    for node in found.nodes.values():
        if node.failure:
            codes.add(4 if node.failure.kind == "unreachable" else 3)
        written = [c for c in node.writes() if not only_drift or c.reason is Reason.DRIFT]
        if changes and (written or node.held()):
            codes.add(2)
    return first(codes)
