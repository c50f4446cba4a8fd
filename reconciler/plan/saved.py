"""A saved plan's text: read strictly, since what it says will be carried out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.errors import StalePlan, Usage
from reconciler.plan.stale import FORMAT

_SHAPE: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "source": str,
    "cluster": str,
    "commit": (str, type(None)),
    "manifestDigest": str,
    "toolVersion": str,
    "selection": dict,
    "nodes": dict,
}


def parse(text: str, path: str) -> Mapping[str, Any]:
    """The plan as JSON. Raises Usage(NotAPlan) or StalePlan(OtherVersion)."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Usage("NotAPlan", path=path, detail=str(e)) from None
    if not isinstance(found, dict) or not isinstance(found.get("format"), str):
        raise Usage("NotAPlan", path=path, detail="it has no format")
    if found["format"] != FORMAT:
        raise StalePlan("OtherVersion", path=path, version=found["format"])
    wrong = [name for name, kind in _SHAPE.items() if not isinstance(found.get(name, ...), kind)]
    if wrong:
        raise Usage("NotAPlan", path=path, detail=f"{', '.join(wrong)} missing or of the wrong type")
    for name, node in found["nodes"].items():
        if not isinstance(node, dict) or not isinstance(node.get("digest"), str) or not isinstance(node.get("observed"), dict):
            raise Usage("NotAPlan", path=path, detail=f"node {name} has no digest or no observation")
    return found
