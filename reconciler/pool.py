"""One kept channel a node, opened side by side; a node that fails never stops the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from reconciler.errors import Garbled, NodeRefused, ReconcileError, Unreachable
from reconciler.model.desired import DesiredNode
from reconciler.model.observed import Failure
from reconciler.transport.base import Channel, Transport

T = TypeVar("T")
CONNECT_DEADLINE = 20.0  # seconds to connect, log in and hear the program's first line
AT_ONCE = 32  # nodes worked on side by side; a node's worker mostly waits


def failure(error: ReconcileError) -> Failure:
    """The error of one node as a value."""
    kinds = {Unreachable: "unreachable", Garbled: "garbled", NodeRefused: "refused"}
    return Failure(next(kind for of, kind in kinds.items() if isinstance(error, of)), error.reason, dict(error.data))


class Pool:
    """Channels by node name. `each` runs a function on many nodes at once; all else is for one thread a node."""

    def __init__(self, transport: Transport, nodes: Mapping[str, DesiredNode], deadline: float = CONNECT_DEADLINE) -> None:
        self._transport = transport
        self._nodes = nodes
        self._deadline = deadline
        self._channels: dict[str, Channel] = {}
        self._failed: dict[str, ReconcileError] = {}
        self._untried: set[str] = set()  # kept from before `renew`: they may have died since
        self._guard = threading.Lock()

    def channel(self, name: str) -> Channel:
        """The node's channel, opened at its first use. Raises Unreachable or Garbled.

        A node that could not be reached is not tried again: its deadline is waited for once a command, not once a question.
        """
        with self._guard:
            if name in self._channels:
                return self._channels[name]
            failed = self._failed.get(name)
        if failed:
            raise type(failed)(failed.reason, **failed.data)  # one exception object must not be raised in two threads
        try:
            channel = self._transport.open(self._nodes[name], self._deadline)
        except ReconcileError as e:
            with self._guard:
                self._failed[name] = e
            raise
        with self._guard:
            self._channels[name] = channel
        return channel

    def drop(self, name: str) -> None:
        """Close a node's channel; the next use opens a new one."""
        with self._guard:
            channel = self._channels.pop(name, None)
        if channel:
            channel.close()

    def reopen(self, name: str) -> Channel:
        """A new channel, whatever became of the one before. Raises Unreachable or Garbled."""
        self.drop(name)
        with self._guard:
            self._failed.pop(name, None)
        return self.channel(name)

    def renew(self, nodes: Mapping[str, DesiredNode]) -> None:
        """Go on with these nodes: channels of nodes that left, or are reached otherwise now, are closed; failures are forgotten.

        To be called while nobody works on a node. What is kept is tried once more in a new channel where it turns out to be dead.
        """
        with self._guard:
            gone = [n for n in self._channels if n not in nodes or nodes[n].access != self._nodes[n].access]
            closing = [self._channels.pop(name) for name in gone]
            self._nodes, self._failed, self._untried = nodes, {}, set(self._channels)
        for channel in closing:
            channel.close()

    def _again(self, name: str) -> bool:
        """Whether a channel that was kept from before is at fault, and a new one may do better."""
        with self._guard:
            untried = name in self._untried
            self._untried.discard(name)
        return untried

    def received(self) -> int:
        """Bytes received from all nodes that are connected now."""
        with self._guard:
            return sum(channel.received for channel in self._channels.values())

    def each(
        self, names: Iterable[str], work: Callable[[str], T], done: Callable[[str], None] | None = None
    ) -> dict[str, T | Failure]:
        """`work(name)` for all `names` side by side. An error of the node is its Failure; any other is raised once all ended."""
        wanted = list(names)

        def one(name: str) -> T | Failure:
            try:
                return self._worked(name, work)
            except (Unreachable, Garbled, NodeRefused) as e:
                if not isinstance(e, NodeRefused):
                    self.drop(name)
                return failure(e)
            finally:
                if done:
                    done(name)

        if not wanted:
            return {}
        executor = ThreadPoolExecutor(min(AT_ONCE, len(wanted)), thread_name_prefix="node")
        try:
            asked = {name: executor.submit(one, name) for name in wanted}
            wait(asked.values())  # whoever catches what is raised below has to find nobody at work
            return {name: answer.result() for name, answer in asked.items()}
        finally:
            # an interrupted command does not wait for nodes that hang; in all other cases every worker is done here
            executor.shutdown(wait=False, cancel_futures=True)

    def _worked(self, name: str, work: Callable[[str], T]) -> T:
        """The first work on a node after `renew` only looks, so it may be done twice."""
        try:
            done = work(name)
        except (Unreachable, Garbled):
            if not self._again(name):
                raise
            self.drop(name)
            return work(name)
        self._again(name)
        return done

    def close(self) -> None:
        """End every channel. Never raises."""
        with self._guard:
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()
        self._transport.close()
