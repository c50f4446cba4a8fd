"""One line for each fact of the catalogue: what a person wants to know of it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.seen import is_absent, is_unknown
from reconciler.render.headlines import gpu, gpu_node, host, kernel, software, system
from reconciler.render.reasons import sentence
from reconciler.render.text import safe

HEADLINES: Mapping[str, Callable[[Any], str]] = {
    **system.HEADLINES,
    **host.HEADLINES,
    **gpu.HEADLINES,
    **gpu_node.HEADLINES,
    **kernel.HEADLINES,
    **software.HEADLINES,
}
NOTES: Mapping[str, Callable[[Any], list[str]]] = {**kernel.NOTES}


def missing(value: Any) -> str:
    """`absent: ...`, `unknown: ... (what the node said)`, or nothing where there is a value."""
    if is_unknown(value):
        words = sentence(str(value["unknown"]), value)
        said = safe(value.get("detail") or "", 120)
        return f"unknown: {words}" + (f" ({said})" if said and said not in words else "")
    return f"absent: {sentence(str(value['absent']), {})}" if is_absent(value) else ""


def notes(name: str, value: Any) -> list[str]:
    """What is known of a fact's value beyond what the node said, one line each."""
    return NOTES[name](value) if name in NOTES and not missing(value) else []


def headline(name: str, value: Any) -> str:
    """The fact in one line."""
    return missing(value) or HEADLINES[name](value)
