"""What was last seen of each node, kept in the state directory: one JSON file a node, replaced whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reconciler.apply.statedir import write_atomically
from reconciler.errors import StateDamaged
from reconciler.model.seen import Cost, NodeSeen, Seen

FORMAT = "reconcile-observation/1"


def _path(directory: Path, node: str) -> Path:
    """Raises ValueError for a name that is no file name."""
    if not node or Path(node).name != node or node.startswith("."):
        raise ValueError(f"no name for a file: {node!r}")
    return directory / f"{node}.json"


def save(directory: Path, node: str, seen: NodeSeen) -> None:
    """Raises OSError. Two looks at the same time: the later one stays, whole."""
    content = {"format": FORMAT, "boot_id": seen.boot_id, "facts": {name: asdict(fact) for name, fact in seen.facts.items()}}
    write_atomically(_path(directory, node), json.dumps(content, separators=(",", ":")).encode())


def load(directory: Path, node: str) -> NodeSeen | None:
    """None where the node was never seen.

    Raises StateDamaged: ObservationUnreadable where the file is not what `save` writes, StateDirUnusable where it may not be read.
    """
    path = _path(directory, node)
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as e:
        raise StateDamaged("StateDirUnusable", path=str(directory.parent), detail=e.strerror) from None
    except (ValueError, RecursionError) as e:
        raise StateDamaged("ObservationUnreadable", path=str(path), detail=type(e).__name__) from None
    try:
        if found["format"] != FORMAT:
            raise StateDamaged("ObservationUnreadable", path=str(path), detail=f"format is not {FORMAT}")
        return NodeSeen(str(found["boot_id"]), {str(name): _seen(fact) for name, fact in found["facts"].items()})
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise StateDamaged("ObservationUnreadable", path=str(path), detail=str(e)) from None


def _seen(fact: Any) -> Seen:
    cost = Cost(**fact["cost"]) if fact["cost"] is not None else None
    return Seen(fact["value"], float(fact["taken"]), str(fact["boot_id"]), cost)
