"""What of the options of `observe` can be meant together, and that what it shall write can be written before any node is asked."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from reconciler.errors import StateDamaged, Usage
from reconciler.model.hostlist import is_node_name
from reconciler.model.words import nearest

# each parameter with those that would say nothing beside it: what a person typed is never passed over in silence
_APART: Mapping[str, tuple[str, ...]] = {
    "local": ("path", "commit", "cluster"),
    "recordings": ("local_name", "last", "record"),
    "last": ("record", "environments"),
}


def check(call: click.Context) -> None:
    """Raises Usage for what cannot be meant together: OptionsApart, OptionNeeds; NotAbsolute for a relative environment."""
    words = {str(p.name): p.opts[0] if isinstance(p, click.Option) else "NODE" for p in call.command.params}
    said = {name for name in call.params if call.params[name] and call.get_parameter_source(name) is not ParameterSource.DEFAULT}
    for name, others in _APART.items():
        for other in others:
            if {name, other} <= said:
                raise Usage("OptionsApart", option=words[name], other=words[other])
    if "local_name" in said and "local" not in said:
        raise Usage("OptionNeeds", option=words["local_name"], other=words["local"])
    if {"nodes", "local"} <= said and "recordings" not in said:
        raise Usage("OptionsApart", option=words["local"], other=words["nodes"])
    for pattern in call.params["environments"]:
        if not pattern.startswith("/"):
            raise Usage("NotAbsolute", option=words["environments"], value=pattern)


def local_name(said: str | None) -> str:
    """What this machine is called. Raises Usage where that is no node's name: what is seen is kept in a file of that name."""
    name = socket.gethostname().lower() if said is None else said
    if not is_node_name(name):
        raise Usage("NotANodeName", name=name)
    return name


def recorded(directory: str, wanted: Sequence[str]) -> list[str]:
    """The recorded machines that are wanted, in their order; all where none is named. Raises Usage."""
    names = recordings(directory)
    for name in wanted:
        if name not in names:
            raise Usage("NoRecording", name=name, path=directory, nearest=nearest(name, names))
    return list(dict.fromkeys(wanted)) or names


def recordings(directory: str) -> list[str]:
    """The names of all recorded machines. Raises Usage where there is none."""
    names = sorted(file.stem for file in Path(directory).glob("*.json"))
    if not names:
        raise Usage("NoRecordings", path=directory)
    return names


def writable(record: str | None, kept: Path | None) -> None:
    """Both folders are there and can be written. Raises Usage for `record`, StateDamaged (StateDirUnusable) for what is `kept`."""
    try:
        if record:
            _prepare(Path(record), 0o755)
    except OSError as e:
        raise Usage("CannotRecord", path=record, detail=e.strerror) from None
    try:
        if kept:
            _prepare(kept, 0o700)
    except OSError as e:
        raise StateDamaged("StateDirUnusable", path=str(kept.parent) if kept else "", detail=e.strerror) from None


def _prepare(directory: Path, mode: int) -> None:
    directory.mkdir(parents=True, exist_ok=True, mode=mode)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(13, os.strerror(13))
