"""A node that was told to restart: waiting until it answers again, in another boot."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.apply.work import StepFailed, Stop
from reconciler.errors import Garbled, ReconcileError, Unreachable
from reconciler.pool import Pool
from reconciler.transport.base import Channel

PAUSE = 0.5  # seconds between two knocks at a door that is shut at once: a host that is down makes us wait longer by itself
AWAY = ("DidNotReturn", "RebootWaitEnded")  # reasons of a node that nobody can speak to any more


@dataclass(frozen=True)
class Return:
    """The node `name`, which was in boot `before`, is to be back `seconds` after `began` (by the monotonic clock).

    `over` says of a channel to that boot whether there is nothing to wait for: the node is not going to restart.
    """

    name: str
    before: str
    pool: Pool
    stop: Stop
    seconds: float
    began: float
    over: Callable[[Channel], bool]

    def wait(self) -> Channel:
        """A channel to the new boot, or to the old one where it is over. Raises StepFailed: DidNotReturn with what the last try
        met, or RebootWaitEnded."""
        last: ReconcileError = Unreachable("ConnectionLost")
        while time.monotonic() - self.began < self.seconds:
            try:
                channel = self.pool.reopen(self.name)
                if channel.hello.boot_id != self.before or self.over(channel):
                    return channel
                last = Unreachable("SameBoot")  # it is still going down
            except (Unreachable, Garbled) as e:  # a machine that starts refuses logins for a while, in many ways
                last = e
            if self.stop.wait(PAUSE):
                raise StepFailed("RebootWaitEnded")
        raise StepFailed("DidNotReturn", **{**last.data, "inner": last.reason, "age": self.seconds})
