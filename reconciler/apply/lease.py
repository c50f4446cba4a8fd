"""This controller's leases: taken before the first write on a node, kept young while it works, given back at the end."""

from __future__ import annotations

import threading
from types import TracebackType

from reconciler.apply.journal import Journal
from reconciler.errors import Garbled, LockHeld, NodeRefused, ReconcileError
from reconciler.events import Emit, now
from reconciler.transport.base import Channel

TTL = 60.0  # seconds without a renewal after which another controller may take over
DEADLINE = 60.0


class Leases:
    """Tokens by node. A background thread renews them all, at a third of their life."""

    def __init__(self, holder: str, journal: Journal, emit: Emit, ttl: float = TTL) -> None:
        self._holder, self._journal, self._emit, self._ttl = holder, journal, emit, ttl
        self._held: dict[str, tuple[int, Channel]] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)

    def __enter__(self) -> Leases:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def take(self, node: str, channel: Channel, plan: str) -> int:
        """The right to write on `node`. Raises LockHeld(OtherController) while somebody else has it."""
        try:
            token = channel.request("lease", DEADLINE, holder=self._holder, plan=plan, ttl=self._ttl).get("token")
        except NodeRefused as e:
            if e.reason == "LeaseHeld":
                about = {name: e.data.get(name) for name in ("holder", "age", "ttl", "plan")}
                raise LockHeld("OtherController", node=node, **about) from None
            raise
        if not isinstance(token, int):
            raise Garbled("WrongShape", detail="lease")
        with self._guard:
            self._held[node] = (token, channel)
        self._journal.append("lease", node=node, plan=plan, token=token)
        return token

    def token(self, node: str) -> int:
        with self._guard:
            return self._held[node][0]

    def give_back(self, node: str, channel: Channel) -> None:
        """End the lease, if there is one; where the node does not answer any more it runs out by itself."""
        with self._guard:
            held = self._held.pop(node, None)
        if held:
            channel.request("release", DEADLINE, token=held[0])

    def abandon(self, node: str) -> None:
        """Stop renewing: the link is lost, and with it the right to say anything about this node."""
        with self._guard:
            self._held.pop(node, None)

    def held(self) -> tuple[str, ...]:
        with self._guard:
            return tuple(self._held)

    def _renew(self) -> None:
        while not self._stop.wait(self._ttl / 3):
            with self._guard:
                held = list(self._held.items())
            # side by side: one node that hangs must not let the leases of the others run out
            renewals = [threading.Thread(target=self._renew_one, args=(n, *lease), daemon=True) for n, lease in held]
            for renewal in renewals:
                renewal.start()
            for renewal in renewals:
                renewal.join()

    def _renew_one(self, node: str, token: int, channel: Channel) -> None:
        try:
            channel.request("renew", self._ttl / 3, token=token)
        except ReconcileError as e:  # the node's own worker meets the same error and decides what it means
            self._emit(now("lease-not-renewed", node, reason=e.reason))
