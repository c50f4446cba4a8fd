"""Record nodes while they are asked: what they answered, redacted, as files for tests and the offline plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.model.desired import DesiredNode
from reconciler.transport import recording
from reconciler.transport.base import Channel, Hello, Transport
from reconciler.transport.recording import Recording
from reconciler.transport.redact import Redactor


@dataclass
class _Heard:
    """What one node said so far. The last answer to a probe counts."""

    hello: Hello
    taken: float
    facts: dict[str, list[Any]] = field(default_factory=dict)
    asked: dict[str, list[Any]] = field(default_factory=dict)
    records: Mapping[str, Any] | None = None


class RecordingChannel:
    """A channel whose answers are noted on their way."""

    def __init__(self, inner: Channel, note: Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]) -> None:
        self._inner, self._note = inner, note

    @property
    def hello(self) -> Hello:
        return self._inner.hello

    @property
    def received(self) -> int:
        return self._inner.received

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        answer = self._inner.request(op, deadline, **fields)
        self._note(op, fields, answer)
        return answer

    def close(self) -> None:
        self._inner.close()


class RecordingTransport:
    """Another transport, and a memory of what its nodes answered."""

    def __init__(self, inner: Transport, clock: Callable[[], float] = time.time) -> None:
        self._inner, self._clock = inner, clock
        self._lock = threading.Lock()
        self._heard: dict[str, _Heard] = {}

    def open(self, node: DesiredNode, deadline: float) -> RecordingChannel:
        channel = self._inner.open(node, deadline)
        with self._lock:
            before = self._heard.get(node.name)
            if before is None or before.hello != channel.hello:  # rebooted: what it said before is of another boot
                self._heard[node.name] = _Heard(channel.hello, self._clock())
        return RecordingChannel(channel, lambda op, fields, answer: self._hear(node.name, op, fields, answer))

    def _hear(self, node: str, op: str, fields: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        with self._lock:
            heard = self._heard[node]
            if op == "probe":
                found = answer.get("facts")
                for key, parts in fields["facts"].items():
                    if isinstance(found, Mapping) and isinstance(found.get(key), list):  # else its reader says what is wrong
                        heard.facts[key], heard.asked[key] = found[key], parts
                heard.records = answer.get("records", heard.records)
            elif op == "records":
                heard.records = answer

    def close(self) -> None:
        self._inner.close()

    def save(self, directory: Path) -> list[Path]:
        """One file a node, redacted: the same value has the same stand-in on all nodes of one `save`. Raises OSError."""
        directory.mkdir(parents=True, exist_ok=True)
        redactor = Redactor()
        with self._lock:
            heard = sorted(self._heard.items())
        return [recording.save(directory, _redacted(node, said, redactor)) for node, said in heard]


def _redacted(node: str, heard: _Heard, redactor: Redactor) -> Recording:
    facts = {key: redactor.answers(heard.asked[key], answers) for key, answers in sorted(heard.facts.items())}
    asked = {key: recording.digest(parts) for key, parts in heard.asked.items()}
    records = redactor.value(heard.records) if heard.records is not None else None
    hello = heard.hello
    return Recording(node, hello.boot_id, hello.hostname, hello.python, hello.uid, heard.taken, facts, asked, records)
