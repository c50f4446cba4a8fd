"""The layers of a GPU driver in one line: packages, module on disk, loaded, in use."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.plan import FieldChange
from reconciler.render.text import safe

_NAMES = {"packages": "packages", "onDisk": "module on disk", "stream": "module stream", "lock": "version lock"}


def driver_layers(fields: Sequence[FieldChange]) -> str:
    """`packages 580.82.07 -> 580.95.05; module on disk ...; loaded 580.82.07 until the reboot; used by no process`."""
    return "; ".join(_layer(field) for field in fields)


def _layer(field: FieldChange) -> str:
    before, after = ("none" if v is None else safe(v, 80) for v in (field.before, field.after))
    if field.path == "inUse":
        return "used by an unknown number of processes" if field.before is None else f"used by {_processes(field.before)}"
    if field.path == "loaded":
        return f"loaded {before} until the reboot, then {after}" if field.moves else f"loaded {before}"
    name = _NAMES.get(field.path) or safe(field.path)
    return f"{name} {before} -> {after}" if field.moves else f"{name} {before}"


def _processes(number: object) -> str:
    return "1 process" if number == 1 else f"{safe(number or 'no')} process" + ("es" if number else "")
