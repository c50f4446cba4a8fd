"""`reconcile`: the command line. Commands are imported when they are called, so that --help answers at once."""

from __future__ import annotations

import gc
import io
import json
import os
import sys
import traceback
from typing import Any, NoReturn

import click

from reconciler import __version__
from reconciler.commands.group import Lazy

COMMANDS = {
    "validate": ("reconciler.commands.validate:validate", "Check manifests: every problem at once, with file:line:column."),
    "schema": ("reconciler.commands.validate:schema", "Print the JSON Schema of the manifests, for editors."),
    "plan": ("reconciler.commands.plan:plan", "Show the difference between Git and the nodes. Changes nothing."),
    "apply": ("reconciler.commands.apply:apply", "Close the difference, or carry out a saved plan."),
    "drift": ("reconciler.commands.plan:drift", "Show what changed on the nodes although Git did not."),
    "observe": ("reconciler.commands.observe:observe", "Show the facts of nodes, each with its age. Changes nothing."),
    "pin": ("reconciler.commands.pin:pin", "Choose every version of the Python environments, and write the locks."),
    "fetch": ("reconciler.commands.pin:fetch", "Fill the wheelhouse with what the locks name, each file checked."),
    "env": ("reconciler.commands.env:env", "List the builds of Python environments, roll back, remove old ones."),
    "controller": ("reconciler.commands.controller:controller", "Keep the nodes as the newest revision declares them."),
    "approve": ("reconciler.commands.approve:approve", "Show the plan that waits for a person, and let it be carried out."),
    "suspend": ("reconciler.commands.ask:suspend", "Let the controller leave nodes alone until a time, with a reason."),
    "resume": ("reconciler.commands.ask:resume", "End a suspension; try again what somebody else kept changing back."),
    "events": ("reconciler.commands.ask:events", "Show what happened in the controller, or follow it."),
    "wait": ("reconciler.commands.ask:wait", "Wait until a condition holds for the cluster or for nodes."),
    "status": ("reconciler.commands.status:status", "Show each node's last plan and outcome, and how old they are."),
    "history": ("reconciler.commands.status:history", "List what was applied, or the records of one apply."),
    "facts": ("reconciler.commands.facts:facts", "Understand saved output of nvidia-smi, rpm, dmesg and others."),
    "snapshot": ("reconciler.commands.snapshot:snapshot", "Take, list and show recorded states of the nodes."),
    "pull": ("reconciler.commands.pull:pull", "On a node: fetch the manifests and apply what concerns this node alone."),
    "hook": ("reconciler.commands.hook:hook", "Let a bare repository check each push, and tell the controller of it."),
    "state": ("reconciler.commands.state:state", "Look after the controller's own records."),
}
INTERRUPTED = 130
# One call imports some hundred modules, answers and ends. Python's own 700 new objects would have it look for garbage about a
# hundred times meanwhile, for 15% of its CPU; what cycles of this many objects could hide is a few MB.
NEW_OBJECTS = 50_000


@click.group(cls=Lazy, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="reconcile")
def cli() -> None:
    """Make a bare-metal GPU cluster match what Git says."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run and end the process with the exit status of the design: 0 1 2 3 4 5 6 7 130."""
    gc.set_threshold(NEW_OBJECTS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of few characters shows escapes instead of ending us
    code = run(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            # the reader has gone (| head): nobody is left to be told
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    # To take a process of some hundred modules to pieces costs a quarter of a plan's CPU, and threads that wait for a node must not
    # keep an interrupted command alive. What has to be closed was closed by then: nothing of ours waits for the interpreter's end.
    os._exit(code)


def run(argv: list[str]) -> int:
    """The exit status of one call. Errors become a sentence on stderr, and a JSON object on stdout under --json."""
    from reconciler.errors import ReconcileError

    try:
        result: Any = cli.main(args=argv, prog_name="reconcile", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        e.show()
        return _failed(argv, "Usage", e.format_message())  # click's own 2 means changes here
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except ReconcileError as e:
        return _tell(e, "--json" in argv)
    except (BrokenPipeError, SystemExit):  # the second is how click ends when the reader has gone
        return 0
    except OSError as e:  # a path of this machine that a person named: --out, --record, the state directory
        said = f"{e.filename or 'this machine'}: {e.strerror or e}"
        click.echo(f"error: {said}", err=True)
        return _failed(argv, "ThisMachine", said)
    except Exception as e:  # noqa: BLE001  (the last line before a traceback on a user's terminal)
        click.echo(f"internal error: {type(e).__name__}: {e} (RECONCILE_DEBUG=1 shows where)", err=True)
        if os.environ.get("RECONCILE_DEBUG"):
            traceback.print_exc()
        return _failed(argv, "Internal", f"{type(e).__name__}: {e}")


def _failed(argv: list[str], reason: str, message: str) -> int:
    """Exit status 1, with the error object that --json promises."""
    if "--json" in argv:
        click.echo(json.dumps({"error": {"reason": reason, "message": message, "transient": False}}))
    return 1


def _tell(caught: Any, as_json: bool) -> int:
    from reconciler.render import data
    from reconciler.render.reasons import error
    from reconciler.render.stale import moved_lines

    if as_json:
        click.echo(json.dumps(data.error(caught)))
    click.echo(f"error: {error(caught)}", err=True)
    for line in moved_lines(caught.data):
        click.echo(line, err=True)
    return int(caught.exit_code)
