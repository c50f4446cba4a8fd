"""Nodes from recordings: what was recorded is answered, what was not is said to be so, and nothing can be written."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.errors import NodeRefused, Unreachable
from reconciler.model.desired import DesiredNode
from reconciler.transport import recording
from reconciler.transport.base import Hello
from reconciler.transport.recording import Recording


class ReplayChannel:
    """One recorded node."""

    def __init__(self, found: Recording) -> None:
        self._found = found
        self._closed = threading.Event()
        self.hello = Hello(found.boot_id, found.hostname, found.python, found.uid, found.taken)
        self.received = 0  # nothing comes from a node

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        """`probe` and `records`. Raises NodeRefused: ReadOnly for every other request, NotRecorded for missing records."""
        if self._closed.is_set():
            raise Unreachable("ConnectionLost", after="Closed")
        if op == "probe":
            return self._probe(fields)
        if op == "records":
            if self._found.records is None:
                raise NodeRefused("NotRecorded", node=self._found.node)
            return self._found.records
        raise NodeRefused("ReadOnly", op=op, node=self._found.node)

    def _probe(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"facts": {key: self._answers(key, parts) for key, parts in fields["facts"].items()}}
        if fields.get("records") and self._found.records is not None:
            answer["records"] = self._found.records
        return answer

    def _answers(self, key: str, parts: list[Any]) -> list[Any]:
        if key in self._found.facts and self._found.asked.get(key) == recording.digest(parts):
            return self._found.facts[key]
        why = "the probe is not the one that was recorded" if key in self._found.facts else "not in the recording"
        return [{"error": "not-recorded", "err": why} for _ in parts]

    def close(self) -> None:
        self._closed.set()


class ReplayTransport:
    """The nodes of a directory of recordings."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, node: DesiredNode, deadline: float) -> ReplayChannel:
        """Raises Unreachable NotRecorded, or Garbled where the file is no recording."""
        return ReplayChannel(recording.load(self._directory, node.name))

    def close(self) -> None:
        """Nothing is shared."""
