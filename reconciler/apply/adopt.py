"""Steps that outlived their controller: wait for those still at work, and take over every outcome before anything else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from reconciler.apply.journal import Journal
from reconciler.apply.lease import Leases
from reconciler.apply.reboot import Return
from reconciler.apply.work import StepFailed, Stop
from reconciler.errors import Garbled, NodeRefused, Unreachable
from reconciler.events import Emit, now
from reconciler.model.plan import RESTART_DEADLINE
from reconciler.pool import Pool
from reconciler.transport.base import Channel

REAPED = 10.0  # seconds for a unit whose runner said its last word to be over
WAIT = 5.0  # seconds of one wait request, asked again until the step is over: how late an interruption is noticed
UNFINISHED = ("intended", "started")
Records = Mapping[str, Any]


def pending(remembered: Records) -> list[Mapping[str, Any]]:
    """Steps in a node's memory that no controller has settled."""
    return [step for step in remembered.get("steps", ()) if not step.get("settled")]


def recall(channel: Channel, **wanted: bool) -> Records:
    """What a node remembers: its lease, steps and inventory. Raises Garbled where that has not the shape that we wrote."""
    found = channel.request("records", 60.0, **wanted)
    steps, inventory, lease = found.get("steps"), found.get("inventory"), found.get("lease")
    shaped = isinstance(steps, list) and all(map(_is_step, steps)) and isinstance(lease, Mapping | None)
    if not shaped or not isinstance(inventory, Mapping) or not all(map(_is_entry, inventory.values())):
        raise Garbled("WrongShape", detail="records")
    return found


def _is_step(found: Any) -> bool:
    if not isinstance(found, Mapping) or not isinstance(found.get("wall"), int | float):
        return False
    words = all(isinstance(found.get(name), str) for name in ("plan", "title", "state"))
    return words and all(isinstance(found.get(name), int) for name in ("token", "step"))


def _is_entry(found: Any) -> bool:
    return isinstance(found, Mapping) and isinstance(found.get("spec"), str)


def adopt(node: str, pool: Pool, journal: Journal, leases: Leases, emit: Emit, stop: Stop) -> int:
    """Bring every unsettled step of one node to its end and into the journal; how many there were.

    Once it is to stop, a step that still runs is left for the next apply. Raises Unreachable, also for a node that a step
    restarts and that does not come back.
    """
    channel = pool.channel(node)
    steps = pending(recall(channel))
    for step in steps:
        token, number = step["token"], step["step"]
        seen = step
        if seen["state"] in UNFINISHED:
            emit(now("adopting", node, token=token, step=number, title=step["title"]))
        while seen["state"] in UNFINISHED:
            if stop:
                return 0
            try:
                seen = _seen(channel, step, WAIT)
            except Unreachable:
                if "reboot" not in step:
                    raise
                channel = _back(node, channel, step, pool, stop) or channel
        journal.append("adopted", node=node, token=token, step=number, plan=seen["plan"], title=seen["title"], state=seen["state"])
        emit(now("adopted", node, token=token, step=number, title=seen["title"], state=seen["state"]))
    if steps:
        token = _take(node, channel, leases)
        channel.request("settle", 60.0, token=token, steps=[[s["token"], s["step"]] for s in steps])
        leases.give_back(node, channel)
    return len(steps)


def _seen(channel: Channel, step: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The record of a step once it is over, or the time is."""
    seen = channel.request("wait", seconds + 30.0, token=step["token"], step=step["step"], seconds=seconds)
    if not _is_step(seen):
        raise Garbled("WrongShape", detail="step record")
    return seen


def _back(node: str, channel: Channel, step: Mapping[str, Any], pool: Pool, stop: Stop) -> Channel | None:
    """A channel to a node that went down as the step wants it to; None where it was not waited for any longer."""

    def over(same: Channel) -> bool:
        return _seen(same, step, 0)["state"] not in UNFINISHED

    before = channel.hello.boot_id
    try:
        return Return(node, before, pool, stop, RESTART_DEADLINE, time.monotonic(), over).wait()
    except StepFailed as e:
        if e.reason == "RebootWaitEnded":
            return None
        raise Unreachable(e.reason, **e.data) from None


def _take(node: str, channel: Channel, leases: Leases) -> int:
    """The lease, once systemd has seen the end of the steps too: their outcome is on disk a moment before."""
    until = time.monotonic() + REAPED
    while True:
        try:
            return leases.take(node, channel, "adopt")
        except NodeRefused as e:
            if e.reason != "StepActive" or time.monotonic() > until:
                raise
        time.sleep(0.05)
