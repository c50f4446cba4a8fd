"""`reconcile facts parse`: one parser on saved output."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import click

from reconciler.commands import common
from reconciler.errors import Usage
from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Fact, Unknown
from reconciler.model.words import nearest
from reconciler.render import facts as render


@click.group()
def facts() -> None:
    """Look at facts."""


@facts.command()
@click.argument("format_", metavar="FORMAT")
@click.argument("file", metavar="FILE")
@common.as_json
def parse(format_: str, file: str, as_json: bool) -> int:
    """Understand FILE, the saved output of a command, as FORMAT (nvsmi-q, topo, kernel-log ...; `-`: standard input)."""
    parser = FORMATS.get(format_)
    if parser is None:
        raise Usage("NoSuchFormat", name=format_, nearest=nearest(format_, FORMATS), formats=list(FORMATS))
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    gc.disable()  # one text, one answer, no cycles, then the end: to look for some would take up to half of the time
    found: Fact[Any] = parser(data.decode("utf-8", "replace"))
    gc.enable()
    if as_json:
        common.print_json(plain(found))
    else:
        click.echo("\n".join(render.lines(plain(found))))
    return 0 if not isinstance(found, Absent | Unknown) else 1
