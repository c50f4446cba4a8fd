"""Probes as the node program understands them, and its raw answers as values."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from reconciler.model.fact import Ask, Available, Part, Probe, Raw, Read, Run, Stat

ERRORS = frozenset({"missing", "denied", "deadline", "too-large", "not-regular", "not-recorded", "io"})


def encode(probe: Probe) -> list[dict[str, Any]]:
    """The parts of one probe for the wire."""
    return [_encode(part) for part in probe.parts]


def _encode(part: Part) -> dict[str, Any]:
    if isinstance(part, Run):
        return {"do": "run", "argv": [*part.argv, *part.gathered], "deadline": part.deadline, "unprivileged": part.unprivileged}
    if isinstance(part, Read):
        return {"do": "read", "path": part.path, "limit": part.limit}
    if isinstance(part, Stat):
        return {"do": "stat", "path": part.path, "owner": part.owner, "group": part.group}
    if isinstance(part, Ask):
        arguments = json.loads(part.arguments)
        return {"do": "ask", "fragment": part.fragment, "arguments": arguments, "deadline": part.deadline, "quick": part.quick}
    return {
        "do": "available",
        "manager": part.manager,
        "names": list(part.names),
        "repositories": [list(pair) for pair in part.repositories],
        "deadline": part.deadline,
        "every_stream": part.every_stream,
    }


def source_of(part: Part) -> str:
    """What a person would call the source of this part's answer."""
    if isinstance(part, Run):
        return " ".join((*part.argv, *part.gathered))
    if isinstance(part, Read | Stat):
        return part.path
    if isinstance(part, Ask):
        return f"fragment {part.fragment}"
    return f"{part.manager} repositories"


def decode(probe: Probe, answers: Any) -> tuple[Raw, ...]:
    """The answers to a probe's parts. Total: what has not the shape of an answer is one with the error `io`."""
    found = answers if isinstance(answers, Sequence) and not isinstance(answers, str) else ()
    padded = [*found, *[None] * len(probe.parts)]
    return tuple(_decode(part, answer) for part, answer in zip(probe.parts, padded, strict=False))


def _decode(part: Part, answer: Any) -> Raw:
    source = source_of(part)
    try:
        status, error = answer.get("status"), answer.get("error", "")
        if not isinstance(status, int | None) or isinstance(status, bool) or not isinstance(error, str):
            return Raw(error="io", source=source)
        ran = isinstance(part, Run | Available | Ask)
        if (error and error not in ERRORS) or (ran and status is None and not error):
            error = "io"  # a command that neither ended nor says why tells nothing
        times = float(answer.get("ms", 0)), float(answer.get("cpu", 0))
        return Raw(_bytes(answer, "out"), _bytes(answer, "err"), status, error, source, *times)
    except (AttributeError, TypeError, ValueError, OverflowError):
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
