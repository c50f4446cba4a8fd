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
    """The plan as JSON. Raises Usage (NotAPlanText, -Format, -Fields, -Node) or StalePlan(OtherVersion)."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Usage("NotAPlanText", path=path, detail=str(e)) from None
    if not isinstance(found, dict) or not isinstance(found.get("format"), str):
        raise Usage("NotAPlanFormat", path=path)
    if found["format"] != FORMAT:
        raise StalePlan("OtherVersion", path=path, version=found["format"])
    wrong = [name for name, kind in _SHAPE.items() if not isinstance(found.get(name, ...), kind)]
    if wrong:
        raise Usage("NotAPlanFields", path=path, fields=wrong)
    if not all(_strings(found["selection"].get(name)) for name in ("nodes", "targets")):
        raise Usage("NotAPlanFields", path=path, fields=["selection"])
    for name, node in found["nodes"].items():
        if not _is_node(node):
            raise Usage("NotAPlanNode", path=path, name=name)
    return found


def _strings(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(item, str) for item in found)


def _is_node(node: Any) -> bool:
    if not isinstance(node, dict) or not isinstance(node.get("digest"), str):
        return False
    observed, changes = node.get("observed"), node.get("changes")
    if not isinstance(observed, dict) or not all(isinstance(fields, dict | None) for fields in observed.values()):
        return False
    return isinstance(changes, list) and all(map(_is_change, changes))


def _is_change(change: Any) -> bool:
    if not isinstance(change, dict) or not isinstance(change.get("resource"), str) or not isinstance(change.get("fields"), list):
        return False
    return all(isinstance(f, dict) and isinstance(f.get("path"), str) and "after" in f for f in change["fields"])
