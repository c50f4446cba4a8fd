"""A node as it once answered: one JSON file a node, read back strictly."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reconciler.errors import Garbled, Unreachable

FORMAT = "reconcile-recording/1"


@dataclass(frozen=True, slots=True)
class Recording:
    """`facts`: key -> the answers to its parts exactly as the program sent them; `asked`: key -> digest of those parts.

    `taken` is in Unix seconds; `records` is what the program remembered (steps, inventory, lease), None where not asked.
    """

    node: str
    boot_id: str
    hostname: str
    python: str
    uid: int
    taken: float
    facts: Mapping[str, list[Any]]
    asked: Mapping[str, str]
    records: Mapping[str, Any] | None = None


def digest(parts: Any) -> str:
    """Of the parts of one probe as they travel: an answer to another question must not be taken for this one's."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def path_of(directory: Path, node: str) -> Path:
    """Raises ValueError for a name that is no file name."""
    if not node or Path(node).name != node or node.startswith("."):
        raise ValueError(f"no name for a file: {node!r}")
    return directory / f"{node}.json"


def load(directory: Path, node: str) -> Recording:
    """Raises Unreachable NotRecorded where there is none, and Garbled where it is not what `save` writes."""
    path = path_of(directory, node)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Unreachable("NotRecorded", node=node, path=str(path)) from None
    except OSError as e:
        raise Unreachable("NotRecorded", node=node, path=str(path), detail=e.strerror or "") from None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Garbled("NotJson", path=str(path), detail=type(e).__name__) from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise Garbled("WrongShape", path=str(path), detail=f"format is not {FORMAT}")
    return _checked(found, node, path)


def _checked(found: dict[str, Any], node: str, path: Path) -> Recording:
    kinds = {"node": str, "boot_id": str, "hostname": str, "python": str, "uid": int, "taken": int | float}
    wrong = [name for name, kind in kinds.items() if not isinstance(found.get(name), kind)]
    facts, asked, records = found.get("facts"), found.get("asked"), found.get("records")
    if not isinstance(facts, dict) or not all(isinstance(answers, list) for answers in facts.values()):
        wrong.append("facts")
    if not isinstance(asked, dict) or not all(isinstance(value, str) for value in asked.values()):
        wrong.append("asked")
    if not isinstance(records, dict | None):
        wrong.append("records")
    wrong += sorted(set(found) - {*kinds, "facts", "asked", "records"})
    if wrong or found["node"] != node:
        raise Garbled("WrongShape", path=str(path), detail=", ".join(wrong) or "another node's")
    return Recording(**found)


def save(directory: Path, recording: Recording) -> Path:
    """Write or replace the node's file, all of it or nothing. Raises OSError."""
    path = path_of(directory, recording.node)
    content = {"format": FORMAT, **asdict(recording)}
    if recording.records is None:
        del content["records"]
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    fd, temporary = tempfile.mkstemp(prefix=f".{recording.node}.", dir=directory)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
