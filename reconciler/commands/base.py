"""What all commands share and what costs nothing to import: options, and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def options(*chosen: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which --help shall list them."""

    def decorate(function: F) -> F:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


commit = click.option("--commit", metavar="SHA", help="This commit instead of HEAD.")
cluster = click.option("--cluster", metavar="NAME", help="Which cluster, where the repository has several.")
on = click.option("--on", multiple=True, metavar="NODES", help="Only these nodes: gpu01, or gpu[01-04,07].")
target = click.option("--target", multiple=True, metavar="KIND[/NAME]", help="Only these resources: Package, or Package/tmux.")
as_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
# for commands whose output is JSON in any case: --json may be said everywhere
always_json = click.option("--json", is_flag=True, expose_value=False, help="What is printed in any case.")
state_dir = click.option("--state-dir", metavar="DIR", help="The controller's records (RECONCILE_STATE_DIR).")


def print_json(value: Any) -> None:
    """Indented for people at a terminal; in one line for programs, which costs a fifth of the time."""
    click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None, default=str))


def print_line(value: Any) -> None:
    """One line of JSON on stdout, at once."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")
    sys.stdout.flush()
