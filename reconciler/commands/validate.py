"""`reconcile validate` and `reconcile schema`: manifests only, no node, no Git."""

from __future__ import annotations

import sys

import click

from reconciler.commands import common
from reconciler.model.schema import json_schema
from reconciler.render import notes
from reconciler.render.problems import problem_text
from reconciler.render.style import style_for
from reconciler.source import validate_path


@click.command()
@click.argument("path", default=".", metavar="[PATH]")
@common.as_json
def validate(path: str, as_json: bool) -> int:
    """Check all manifests below PATH as they are on disk. Exit 1 when anything is wrong."""
    loaded = validate_path(path)
    if as_json:
        common.print_json(
            {
                "valid": not loaded.problems,
                "problems": common.told(loaded),
                "documents": dict(loaded.documents),
                "nodes": loaded.nodes,
            }
        )
        return 1 if loaded.problems else 0
    out = [notes.validated(len(loaded.problems), loaded.documents, loaded.nodes, style_for(sys.stdout))]
    out += [problem_text(problem) for problem in loaded.problems] + [notes.warning(problem) for problem in loaded.warnings]
    if loaded.unchecked:
        out.append(notes.unchecked(loaded.unchecked))
    click.echo("\n".join(out))
    return 1 if loaded.problems else 0


@click.command()
@common.always_json
def schema() -> int:
    """Print the JSON Schema of all manifest kinds, for editors and CI."""
    common.print_json(json_schema())
    return 0
