"""Slurm's JSON about nodes: `scontrol show node --json`, `sinfo --json` of Slurm 21.08 and of 22.05 on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reconciler.facts import raw, slurm_table
from reconciler.model.fact import Fact, Unknown, Value

# the keys of a node under the names of scontrol
_JSON = {
    "name": "NodeName",
    "gres": "Gres",
    "gres_used": "GresUsed",
    "operating_system": "OS",
    "version": "Version",
    "slurmd_version": "Version",
    "cpus": "CPUTot",
    "effective_cpus": "CPUEfctv",
    "real_memory": "RealMemory",
    "free_memory": "FreeMem",
    "free_mem": "FreeMem",
    "reason": "Reason",
    "reason_set_by_user": "ReasonBy",
    "tres": "CfgTRES",
    "tres_used": "AllocTRES",
}
_MOST = 65_536  # nodes of a cluster: Slurm's own limit


@dataclass(frozen=True, slots=True)
class Json:
    """Nodes as fields under the names of scontrol."""

    nodes: list[dict[str, str]]
    version: Fact[str]


def _plain(value: Any) -> str | None:
    """A JSON value as scontrol would write it; newer Slurm wraps numbers: {"set": true, "number": 5}."""
    if isinstance(value, dict):
        return _plain(value.get("number")) if value.get("set") is True else None
    if isinstance(value, list):
        return "+".join(item for item in value if isinstance(item, str))
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _json_node(row: Any) -> dict[str, str]:
    if not isinstance(row, dict):
        return {}
    found: dict[str, str] = {}
    for key, name in _JSON.items():
        value = _plain(row.get(key))
        if value is not None and key in row:
            found.setdefault(name, value)
        elif key in row and name == "AllocTRES":
            found[name] = ""
    states = [part for key in ("state", "state_flags") if (part := _plain(row.get(key)))]
    if states:
        found["State"] = "+".join(states)
    return found


def _release(meta: Any) -> Fact[str]:
    slurm = (meta.get("Slurm") or meta.get("slurm")) if isinstance(meta, dict) else None
    release = slurm.get("release") if isinstance(slurm, dict) else None
    return Value(release) if isinstance(release, str) and release else Unknown("Missing", "release")


def _same(row: dict[str, Any], key: str) -> str | None:
    """What the nodes of a group have in common; None where they differ."""
    found = row.get(key)
    least, most = (_plain(found.get(end)) for end in ("minimum", "maximum")) if isinstance(found, dict) else (None, None)
    return most if least == most else None


def _inner(row: dict[str, Any], key: str, inner: str) -> str | None:
    found = row.get(key)
    return _plain(found.get(inner)) if isinstance(found, dict) else None


def _group(row: Any) -> list[dict[str, str]]:
    """Nodes that sinfo shows together since 22.05: {"node": {"state"}, "nodes": {"nodes": [...]}, "gres": {"total"} ...}."""
    if not isinstance(row, dict):
        return [{}]
    said = {
        "State": _inner(row, "node", "state"),
        "CPUTot": _same(row, "cpus"),
        "RealMemory": _same(row, "memory"),
        "Gres": _inner(row, "gres", "total"),
        "GresUsed": _inner(row, "gres", "used"),
        "Reason": _inner(row, "reason", "description"),
        "ReasonBy": _inner(row, "reason", "user"),
    }
    fields = {key: value for key, value in said.items() if value is not None}
    nodes = row.get("nodes")
    listed = nodes.get("nodes") if isinstance(nodes, dict) else None
    if not isinstance(listed, list):
        return [{}]
    names = [name for cell in listed if isinstance(cell, str) for name in slurm_table.hosts(cell) or [""]]
    return [{**fields, "NodeName": name} for name in names[:_MOST]]


def read(said: str) -> Fact[Json]:
    """Unknown(NotJson); Unknown(NoNodes) where it tells of something else."""
    try:
        found = json.loads(said)
    except (ValueError, RecursionError) as error:
        return Unknown("NotJson", raw.clean(str(error)[:400], 120))
    rows, groups = (found.get("nodes"), found.get("sinfo")) if isinstance(found, dict) else (None, None)
    if isinstance(rows, list):
        return Value(Json([_json_node(row) for row in rows], _release(found.get("meta"))))
    if isinstance(groups, list):
        return Value(Json([node for row in groups for node in _group(row)][:_MOST], _release(found.get("meta"))))
    return Unknown("NoNodes", raw.clean(said[:400], 120))
