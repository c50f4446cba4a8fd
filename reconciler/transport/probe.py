"""Probes as the node program understands them, and its raw answers as values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from reconciler.model.fact import Part, Probe, Raw, Read, Run, Stat


def encode(probe: Probe) -> list[dict[str, Any]]:
    """The parts of one probe for the wire."""
    return [_encode(part) for part in probe.parts]


def _encode(part: Part) -> dict[str, Any]:
    if isinstance(part, Run):
        return {"do": "run", "argv": list(part.argv), "deadline": part.deadline}
    if isinstance(part, Read):
        return {"do": "read", "path": part.path, "limit": part.limit}
    if isinstance(part, Stat):
        return {"do": "stat", "path": part.path, "owner": part.owner, "group": part.group}
    return {
        "do": "available",
        "manager": part.manager,
        "names": list(part.names),
        "repositories": [list(pair) for pair in part.repositories],
        "deadline": part.deadline,
    }


def source_of(part: Part) -> str:
    """What a person would call the source of this part's answer."""
    if isinstance(part, Run):
        return " ".join(part.argv)
    if isinstance(part, Read | Stat):
        return part.path
    return f"{part.manager} repositories"


def decode(probe: Probe, answers: Any) -> tuple[Raw, ...]:
    """The answers to a probe's parts. Total: what has not the shape of an answer is one with the error `io`."""
    found = answers if isinstance(answers, Sequence) and not isinstance(answers, str) else ()
    padded = [*found, *[None] * len(probe.parts)]
    return tuple(_decode(answer, source_of(part)) for part, answer in zip(probe.parts, padded, strict=False))


def _decode(answer: Any, source: str) -> Raw:
    try:
        status = answer.get("status")
        if status is not None and not isinstance(status, int):
            return Raw(error="io", source=source)
        return Raw(
            _bytes(answer, "out"), _bytes(answer, "err"), status, str(answer.get("error", "")), source, float(answer.get("ms", 0))
        )
    except (AttributeError, TypeError, ValueError):
        return Raw(error="io", source=source)


def _bytes(answer: Any, name: str) -> bytes:
    if f"{name}64" in answer:
        try:
            return base64.b64decode(answer[f"{name}64"], validate=True)
        except binascii.Error as e:
            raise ValueError(name) from e
    text = answer.get(name, "")
    if not isinstance(text, str):
        raise ValueError(name)
    return text.encode("utf-8", "surrogatepass")
