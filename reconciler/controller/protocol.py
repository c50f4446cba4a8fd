"""The controller's socket, both ends: JSON lines, one request a connection. Framing only; who may do what is decided elsewhere.

client  {"v": 1, "op": "push", "repository": ..., ...}
server  {"event": {...}}     any number, the JSON of `reconcile apply --json`
server  {"end": {"exit": 0, "reason": "Detached", "data": {"id": ...}}}     once, last
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.errors import ControllerError
from reconciler.model.words import nearest

VERSION = 1
LIMIT = 1 << 20  # bytes of one line; a longer event is replaced by its name and its size
SOCKET = "controller.sock"  # in the state directory
LONGEST = 107  # bytes of a socket's name: sun_path of unix(7), without its end
CONNECT = 5.0  # seconds: the controller takes a connection at once or is in trouble
_CHUNK = 1 << 16
_NUMBER = (int, float)
Message = Mapping[str, Any]

# op -> field -> (types, whether it has to be there)
OPS: Mapping[str, Mapping[str, tuple[tuple[type, ...], bool]]] = {
    "push": {
        "repository": ((str,), True),
        "ref": ((str,), True),
        "old": ((str,), True),
        "new": ((str,), True),
        "pusher": ((str,), False),
        "detach_s": (_NUMBER, False),
    },
    "follow": {"id": ((str,), True)},
    "wake": {"reason": ((str,), False)},
    "status": {},
    "events": {"since": (_NUMBER, False), "follow": ((bool,), False)},
    "wait": {"condition": ((str,), True), "nodes": ((list,), False), "timeout": (_NUMBER, False)},
    "waiting": {},
    "approve": {"plan": ((str,), True), "by": ((str,), False)},
    "suspend": {
        "scope": ((list,), False),  # names of nodes; none or empty: the cluster
        "reason": ((str,), True),
        "until": (_NUMBER, True),  # Unix seconds
        "by": ((str,), False),
    },
    "resume": {"scope": ((list,), False), "by": ((str,), False)},
}


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for: an op of OPS with fields of the right types."""

    op: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that cannot be understood: NotJson, UnknownVersion, UnknownOp, WrongField, LineTooLong."""

    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)


def encode(message: Message) -> bytes:
    """One line. An event longer than LIMIT becomes `{"event": NAME, "omitted": BYTES}`; nothing else may be that long."""
    line = _line(message)
    if len(line) > LIMIT:
        name = message.get("event", {}).get("event", "") if "event" in message else ""
        about = {"size": len(line), "limit": LIMIT}
        line = _line(event({"event": name, "omitted": len(line)}) if name else end(1, "LineTooLong", **about))
    return line


def _line(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"


def event(fields: Message) -> dict[str, Any]:
    return {"event": dict(fields)}


def end(exit_code: int, reason: str = "", **data: Any) -> dict[str, Any]:
    """The last message. `reason` is a code, empty where there is nothing to say."""
    return {"end": {"exit": exit_code, "reason": reason, "data": data}}


def parse_request(line: bytes) -> Request | Refusal:
    """What the first line of a client asks for. Never raises."""
    found = _object(line)
    if found is None:
        return Refusal("NotJson")
    if found.get("v") != VERSION:
        return Refusal("UnknownVersion", {"version": found.get("v"), "supported": VERSION})
    op = found.get("op")
    if not isinstance(op, str) or op not in OPS:
        return Refusal("UnknownOp", {"name": op, "nearest": nearest(str(op), OPS), "ops": list(OPS)})
    fields = {name: value for name, value in found.items() if name not in ("v", "op")}
    wrong = sorted(name for name in {*fields, *OPS[op]} if not _fits(OPS[op].get(name), fields.get(name)))
    return Refusal("WrongField", {"op": op, "fields": wrong, "allowed": list(OPS[op])}) if wrong else Request(op, fields)


def _fits(declared: tuple[tuple[type, ...], bool] | None, value: Any) -> bool:
    if declared is None:
        return False
    types, needed = declared
    if value is None:
        return not needed
    if isinstance(value, bool) and bool not in types:
        return False
    return isinstance(value, types) and (not isinstance(value, list) or all(isinstance(item, str) for item in value))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def lines(connection: socket.socket) -> Iterator[bytes]:
    """Lines as they come, without their end; ends with the connection. Raises ControllerError(LineTooLong) and OSError."""
    held = b""
    while chunk := connection.recv(_CHUNK):
        *whole, held = (held + chunk).split(b"\n")
        yield from whole
        if len(held) > LIMIT:
            raise ControllerError("LineTooLong", size=len(held), limit=LIMIT)


def read_request(connection: socket.socket) -> Request | Refusal | None:
    """The request of one client; None where it left without one. Raises OSError (a client that says nothing: TimeoutError)."""
    try:
        line = next(lines(connection), None)
    except ControllerError as e:
        return Refusal(e.reason, e.data)
    return None if line is None else parse_request(line)


def ask(path: Path, request: Message) -> Iterator[Message]:
    """Send one request and yield what is answered, the `end` message last. Closing the iterator ends the connection.

    `request`: op and its fields. Raises ControllerError: NoController (nothing listens at `path`), ControllerDenied,
    ControllerLost (it went before it said its end), ControllerGarbled.
    """
    with _connected(path) as connection:
        try:
            connection.sendall(_line({"v": VERSION, **request}))
            for line in lines(connection):
                message = _object(line)
                if message is None or not ({"event", "end"} & set(message)):
                    raise ControllerError("ControllerGarbled", path=str(path))
                yield message
                if "end" in message:
                    return
        except OSError:
            pass  # said below: it is gone
    raise ControllerError("ControllerLost", path=str(path))


def _connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(CONNECT)
        with address(path) as name:
            connection.connect(name)
        connection.settimeout(None)
    except (PermissionError, FileNotFoundError, ConnectionRefusedError, OSError) as e:
        connection.close()
        reason = "ControllerDenied" if isinstance(e, PermissionError) else "NoController"
        raise ControllerError(reason, path=str(path), detail=e.strerror or str(e)) from None
    return connection


@contextmanager
def address(path: Path) -> Iterator[str]:
    """A name of the socket that fits: its address holds 107 bytes, and a state directory may lie deeper."""
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
