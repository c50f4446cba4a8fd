"""What holds for every command, found by walking them: a new one is held to it too."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from reconciler.cli import cli


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that can be called, by its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(cli))


@pytest.mark.parametrize("name", COMMANDS)
def test_json_and_help_are_everywhere(name: str) -> None:
    options = {word for parameter in COMMANDS[name].params for word in parameter.opts}
    assert "--json" in options
    assert (COMMANDS[name].help or "").strip()
