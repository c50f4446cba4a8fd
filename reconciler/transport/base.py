"""The small protocol that every transport offers, and the frames of the node program's answers."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.errors import Garbled
from reconciler.model.desired import DesiredNode

PROTOCOL = 1
HELLO = b"RECONCILE-NODE "
NOISE_LIMIT = 64 << 10  # a login shell's chatter before the program speaks
LINE_LIMIT = 4 << 20  # one answer, compressed: 200 MB of kernel log is never one
UNPACKED_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Hello:
    """What the program says when it starts. `uid` is 0 where it may write.

    `recorded`: of a recording, when it was taken, in Unix seconds; None for a node that answers now.
    """

    boot_id: str
    hostname: str
    python: str
    uid: int
    recorded: float | None = None


class Channel(Protocol):
    """One kept channel to a node program. `request` may be called by several threads at once."""

    @property
    def hello(self) -> Hello: ...

    @property
    def received(self) -> int:
        """Bytes that came from the node on this channel so far, SSH's own overhead included where there is one."""
        ...

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        """Ask and wait for the answer, at most `deadline` seconds.

        Raises Unreachable (ConnectionLost, DeadlinePassed), Garbled, or NodeRefused with the program's code and data.
        """
        ...

    def close(self) -> None:
        """End the program on the node. What it started as a unit goes on. Never raises."""
        ...


class Transport(Protocol):
    """Opens channels. Used by many threads at once, one node each."""

    def open(self, node: DesiredNode, deadline: float) -> Channel:
        """Raises Unreachable or Garbled; `deadline` in seconds covers connect, login and the program's first line."""
        ...

    def close(self) -> None:
        """End everything that is shared between channels (jump hosts). Never raises."""
        ...


def parse_hello(line: bytes) -> Hello:
    """The program's first line. Raises Garbled."""
    try:
        said = json.loads(line[len(HELLO) :])
        if said["protocol"] != PROTOCOL:
            raise Garbled("WrongShape", detail=f"protocol {said['protocol']}")
        return Hello(str(said["boot_id"]), str(said["hostname"]), str(said["python"]), int(said["uid"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as e:  # 1e999 and a thousand brackets are JSON too
        raise Garbled("NotJson", detail=type(e).__name__) from None


def parse_answer(line: bytes) -> dict[str, Any]:
    """One answer line: `{id, ok}` or `{id, refused, data}`, perhaps compressed in `z`. Raises Garbled."""
    try:
        message = json.loads(line)
        if isinstance(message, dict) and "z" in message:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(base64.b64decode(message["z"], validate=True), UNPACKED_LIMIT)
            if unpacker.unconsumed_tail:
                raise Garbled("AnswerTooLong", limit=UNPACKED_LIMIT)
            message = json.loads(text)
    except (ValueError, zlib.error, TypeError, RecursionError) as e:
        raise Garbled("NotJson", detail=type(e).__name__) from None
    shape = isinstance(message, dict) and isinstance(message.get("id"), int)
    if not shape or not (isinstance(message.get("ok"), dict) or isinstance(message.get("refused"), str)):
        raise Garbled("WrongShape", detail="neither ok nor refused")
    return dict(message)
