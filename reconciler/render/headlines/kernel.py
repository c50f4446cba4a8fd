"""The kernel log in one line, and what its Xid numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.data import xid
from reconciler.render.headlines.words import word
from reconciler.render.text import count, safe

_QUIET = ("driver-loaded", "gpu-uuid", "xid")  # no faults; Xids are told by their numbers
_SHOWN = 3
_CLASSES = {
    "application": "the application",
    "application_or_hardware": "the application or the hardware",
    "hardware": "the hardware",
    "driver_or_firmware": "the driver or firmware",
    "informational": "for information",
}


def _gravity(code: str) -> int:
    """The worst first, and what nobody knows before what is harmless."""
    known = xid.catalogue().get(int(code))
    return {"critical": 0, "warn": 2, "parse": 2, "info": 3}.get(known.severity, 1) if known else 1


def _xid(bus: str, code: str, lines: int) -> str:
    found = xid.catalogue().get(int(code))
    times = f" ({lines} lines)" if lines > 1 else ""
    return f"Xid {safe(code)} on {safe(bus)}{times}" + (f": {found.meaning}" if found else "")


def _log(value: Any) -> str:
    found = [(bus, code, lines) for bus, codes in value["xids"].items() for code, lines in codes.items()]
    xids = [_xid(*each) for each in sorted(found, key=lambda each: (_gravity(each[1]), each))]
    more = [count(len(xids) - _SHOWN, "more Xid")] if len(xids) > _SHOWN else []
    other = [f"{lines} x {safe(kind)}" for kind, lines in value["kinds"].items() if kind not in _QUIET]
    lost = [f"GPU {', '.join(map(safe, value['lost']))} lost"] if value["lost"] else []
    said = "; ".join([*lost, *xids[:_SHOWN], *more, *other]) or "nothing of interest"
    hidden = f"; {count(value['unlisted'], 'line')} not listed" if value["unlisted"] else ""
    return f"{said}{hidden}{_extent(value)}"


def _extent(value: Any) -> str:
    """From where to where it was read, where that is not all of this boot."""
    parts = []
    if value["more"] is True:
        parts.append("not read to the end yet")
    if value["whole"] is not True:
        parts.append("the beginning of the boot is missing" if value["whole"] is False else "whether it is whole is not known")
    return f" ({word(value['source'])}{', ' if parts else ''}{', '.join(parts)})"


def _meanings(value: Any) -> list[str]:
    """One line for each Xid number that is there, and where the words come from."""
    codes = sorted({int(code) for codes in value["xids"].values() for code in codes})
    known = xid.catalogue() if codes else {}
    lines = [_meaning(known[code]) if code in known else f"Xid {code}: not in the catalogue" for code in codes]
    return [*lines, *([f"source: {xid.SOURCES}; class and severity are ours"] if lines else [])]


def _meaning(found: xid.Xid) -> str:
    cls = _CLASSES.get(found.cls, "class not known")
    action = f"; NVIDIA names {found.immediate}" if found.immediate else ""
    return f"Xid {found.code}: {found.meaning} ({cls}, {found.severity}{action})"


HEADLINES: Mapping[str, Callable[[Any], str]] = {"kernel-log": _log}
NOTES: Mapping[str, Callable[[Any], list[str]]] = {"kernel-log": _meanings}
