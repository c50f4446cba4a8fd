"""`--dry-run`: what would be trained, with what and why, and whether it fits; nothing is loaded."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from trainer.memory import GIB
from trainer.prepare import Prepared


def report(found: Prepared, device_name: str) -> dict[str, Any]:
    """The same as JSON."""
    shape = found.plan.shape
    return {
        "settings": [{"name": s.name, "value": s.value, "origin": s.origin} for s in found.resolved.settings],
        "parameters": {"total": shape.parameters, "trained": shape.trainable, "adapted_layers": len(found.plan.targets)},
        "rows": {"train": found.data.train_rows, "validation": found.data.validation_rows} if found.data else None,
        "memory": {
            **{k: round(v / GIB, 3) for k, v in asdict(found.estimate).items()},
            "total": round(found.estimate.total / GIB, 3),
        },
        "device": device_name,
        "card_gib": None if found.card is None else round(found.card / GIB, 1),
        "fits": found.fits,
        "try": list(found.advice),
    }


def text(data: dict[str, Any]) -> str:
    """For people."""
    settings = data["settings"]
    names, values = max(len(s["name"]) for s in settings), max(len(_shown(s["value"])) for s in settings)
    lines = [f"{s['name']:<{names}}  {_shown(s['value']):<{min(values, 40)}}  {s['origin']}" for s in settings]
    counts = data["parameters"]
    share = counts["trained"] / counts["total"]
    lines += ["", f"parameters  {counts['total']:,}, of which {counts['trained']:,} are trained ({share:.2%})"]
    if data["rows"]:
        lines.append(f"rows        {data['rows']['train']:,} for training, {data['rows']['validation']:,} for validation")
    lines += ["", "memory a GPU, estimated (GiB)"]
    lines += [f"  {name:<12} {value:8.2f}" for name, value in data["memory"].items()]
    return "\n".join([*lines, _verdict(data)])


def _verdict(data: dict[str, Any]) -> str:
    if data["fits"] is None:
        return f"{data['device']}: no card to hold it against; --card-gib says one"
    if data["fits"]:
        return f"fits: {data['memory']['total']:.1f} of {data['card_gib']:.1f} GiB"
    return f"does not fit: {data['memory']['total']:.1f} of {data['card_gib']:.1f} GiB; try {', or '.join(data['try'])}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "value", value))
