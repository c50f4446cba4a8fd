"""Whether a saved plan still fits: the digest of what it touches, and the field that moved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.observed import Fields
from reconciler.model.plan import NodePlan, Plan

FORMAT = "reconcile-plan/1"


@dataclass(frozen=True, slots=True)
class Moved:
    """One thing that is not as it was when the plan was made. `node` empty: it is about the whole plan."""

    node: str
    path: str
    before: Any
    after: Any


def digest_of(observed: Mapping[str, Fields | None]) -> str:
    """SHA-256 (hex, 16 digits) of the stable observation of what a node's plan touches."""
    return hashlib.sha256(json.dumps(observed, sort_keys=True).encode()).hexdigest()[:16]


def moved(saved: Mapping[str, Any], fresh: Plan) -> tuple[Moved, ...]:
    """What differs between a saved plan (as JSON) and the same plan made now; empty: it may be carried out."""
    found = [
        Moved("", name, saved[key], now)
        for name, key, now in (
            ("commit", "commit", fresh.revision.commit),
            ("manifest digest", "manifestDigest", fresh.manifest_digest),
            ("tool version", "toolVersion", fresh.tool_version),
            ("cluster", "cluster", fresh.cluster),
        )
        if saved[key] != now
    ]
    if found:
        return tuple(found)
    for name in covered(saved):
        then, now = saved["nodes"][name], fresh.nodes.get(name)
        if now is not None and now.failure is None:
            same = then["digest"] == now.digest
            found += _retargeted(then, now) if same else _differences(name, then["observed"], now.observed)
    return tuple(found)


def _retargeted(then: Mapping[str, Any], now: NodePlan) -> list[Moved]:
    """What would become something else than was reviewed: a newer version that the repositories offer by now."""
    meant = {(c["resource"], f["path"]): f["after"] for c in then["changes"] for f in c["fields"]}
    fresh = {(str(c.id), f.path): f.after for c in now.writes() for f in c.fields}
    return [
        Moved(now.name, f"{name}.{path} (planned)", meant[name, path], after)
        for (name, path), after in fresh.items()
        if (name, path) in meant and meant[name, path] != after
    ]


def covered(saved: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes that a saved plan changes: what it could not observe, or left alone, it says nothing about."""
    return tuple(name for name, node in saved["nodes"].items() if node["observed"])


def _differences(node: str, then: Mapping[str, Any], now: Mapping[str, Fields | None]) -> list[Moved]:
    """The fields by name; only for the few nodes whose digest moved, since DeepDiff is slow."""
    from deepdiff import DeepDiff

    plain = {k: dict(v) if v is not None else None for k, v in now.items()}
    found = []
    for level in _levels(DeepDiff(dict(then), plain, view="tree")):
        path = ".".join(str(step) for step in level.path(output_format="list"))
        before, after = _side(level.t1), _side(level.t2)
        found.append(Moved(node, path, before, after))
    return found


def _levels(difference: Mapping[str, Any]) -> list[Any]:
    return sorted((level for group in difference.values() for level in group), key=lambda level: str(level.path()))


def _side(value: Any) -> Any:
    """DeepDiff's marker of a missing side is no value of ours."""
    return value if value is None or isinstance(value, str | int | bool | dict) else None
