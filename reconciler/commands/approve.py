"""`reconcile approve`: the plan that waits for a person, shown, and let be carried out."""

from __future__ import annotations

import getpass
import sys
from dataclasses import replace

import click

from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.commands.ask import ask, message, place, tell
from reconciler.controller.approvals import Approvals, what_waits
from reconciler.errors import ControllerError
from reconciler.plan import wire
from reconciler.render import plan as render_plan
from reconciler.render.style import style_for


@click.command()
@click.argument("plan", metavar="[PLAN|REVISION]", required=False)
@common.state_dir
@common.as_json
def approve(plan: str | None, state_dir: str | None, as_json: bool) -> int:
    """Let a plan that waits be carried out, or a revision that was refused be taken. Without an argument: show the plan that waits.

    Exactly that plan: where anything that it touches moved since, it is refused and a new one waits.
    """
    state = place(state_dir)
    if plan is None:
        return _show(state, as_json)
    try:
        return tell(ask(state, {"op": "approve", "plan": plan}, as_json)[1], as_json)
    except ControllerError as e:
        if e.reason != "NoController":
            raise
    with state.locked():
        kept = Approvals(state.approvals)
        pending = kept.pending()
        if pending is None or pending.id != plan:
            return tell(message("NothingToApprove", 1, name=plan, waiting=[pending.id] if pending else []), as_json)
        kept.keep(replace(pending, by=getpass.getuser()))
    return tell(message("ApprovedLater", plan=plan), as_json)


def _show(state: StateDir, as_json: bool) -> int:
    """The plan that waits, as a plan is shown, and who approved it already. Exit 0 whether one waits or not."""
    try:
        events, ended = ask(state, {"op": "waiting"}, as_json, show=False)
        found = events[0].get("plan") if events else None
    except ControllerError as e:
        if e.reason != "NoController":
            raise
        pending = Approvals(state.approvals).pending()
        found = dict(pending.plan) if pending else None
        reason, about = what_waits(pending)
        ended = message(reason, 0, **about)
    if as_json:
        common.print_json({"plan": found, "by": ended["data"].get("by", "")})
        return 0
    status = tell(ended, as_json)
    if found:
        click.echo("\n".join(["", *render_plan.render(wire.plan(found), style_for(sys.stdout))]))
    return status
