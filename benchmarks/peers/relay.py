"""A TCP relay that delays and counts, as a process of its own: python -m benchmarks.peers.relay HOST:PORT...

It stands for the distance between controller and nodes where the kernel has no netem: what arrives leaves again half a round trip
later, in order; a connection is opened to its target one round trip after it was accepted, as a handshake over that distance takes.
Its CPU belongs to neither side. It first prints the ports that it listens on, for each target one, as a JSON list; then it answers
each line of its standard input with one: `delay MS` (a whole round trip) with `{}`, `counts` with what passed since the start.
"""

from __future__ import annotations

import asyncio
import collections
import json
import socket
import sys
from dataclasses import asdict, dataclass


@dataclass
class Counts:
    """Bytes of TCP payload to and from the targets; `turns`: times that a controller sent after it had been sent something."""

    connections: int = 0
    sent: int = 0
    received: int = 0
    turns: int = 0


class Relay:
    """All connections, one delay, one set of counts."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.round_trip = 0.0  # seconds

    async def listen(self, host: str, port: int) -> tuple[asyncio.Server, int]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Near(self, host, port), "127.0.0.1", 0, backlog=256)
        return server, server.sockets[0].getsockname()[1]

    def answer(self, line: str) -> object:
        word, _, value = line.strip().partition(" ")
        if word == "delay":
            self.round_trip = float(value) / 1000
            return {}
        return asdict(self.counts)


class Later:
    """Gives what it gets to `write`, in order, half a round trip later. The end (None) waits its turn too."""

    def __init__(self, relay: Relay) -> None:
        self._relay, self._due, self._loop = relay, collections.deque[tuple[float, bytes | None]](), asyncio.get_running_loop()
        self._target: asyncio.Transport | None = None

    def towards(self, target: asyncio.Transport) -> None:
        self._target = target
        self._pass_on()

    def put(self, data: bytes | None) -> None:
        delay = self._relay.round_trip / 2
        self._due.append((self._loop.time() + delay, data))
        if delay:
            self._loop.call_later(delay, self._pass_on)
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._target and self._due and self._due[0][0] <= self._loop.time() + 1e-4:
            data = self._due.popleft()[1]
            if self._target.is_closing():
                continue
            if data is None:
                self._target.close()
            else:
                self._target.write(data)


class Near(asyncio.Protocol):
    """The controller's side of one connection."""

    def __init__(self, relay: Relay, host: str, port: int) -> None:
        self._relay, self._host, self._port = relay, host, port
        self._up, self._down = Later(relay), Later(relay)
        self._spoken_to = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        _at_once(transport)
        self._relay.counts.connections += 1
        self._down.towards(transport)
        self._opening = asyncio.ensure_future(self._open(transport))

    async def _open(self, near: asyncio.Transport) -> None:
        await asyncio.sleep(self._relay.round_trip)
        try:
            loop = asyncio.get_running_loop()
            far, _ = await loop.create_connection(lambda: Far(self), self._host, self._port)
        except OSError:
            near.close()
            return
        _at_once(far)
        self._up.towards(far)

    def data_received(self, data: bytes) -> None:
        self._relay.counts.sent += len(data)
        self._relay.counts.turns += self._spoken_to
        self._spoken_to = False
        self._up.put(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._up.put(None)

    def answered(self, data: bytes | None) -> None:
        self._relay.counts.received += len(data or b"")
        self._spoken_to = True
        self._down.put(data)


class Far(asyncio.Protocol):
    """The node's side of one connection."""

    def __init__(self, near: Near) -> None:
        self._near = near

    def data_received(self, data: bytes) -> None:
        self._near.answered(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._near.answered(None)


def _at_once(transport: asyncio.Transport) -> None:
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def serve(targets: list[tuple[str, int]]) -> None:
    """Until standard input ends."""
    relay = Relay()
    servers = [await relay.listen(host, port) for host, port in targets]
    print(json.dumps([port for _, port in servers]), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(relay.answer(line)), flush=True)


def main() -> None:
    pairs = [word.rpartition(":") for word in sys.argv[1:]]
    asyncio.run(serve([(host, int(port)) for host, _, port in pairs]))


if __name__ == "__main__":
    main()
