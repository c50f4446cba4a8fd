"""Steps that outlived their controller: wait for those still at work, and take over every outcome before anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.apply.journal import Journal
from reconciler.apply.lease import Leases
from reconciler.events import Emit, now
from reconciler.transport.base import Channel

WAIT = 30.0  # seconds of one wait request; asked again until the step is over
Records = Mapping[str, Any]


def pending(remembered: Records) -> list[Mapping[str, Any]]:
    """Steps in a node's memory that no controller has settled."""
    return [step for step in remembered.get("steps", ()) if not step.get("settled")]


def adopt(node: str, channel: Channel, journal: Journal, leases: Leases, emit: Emit) -> int:
    """Bring every unsettled step of one node to its end and into the journal; how many there were."""
    steps = pending(channel.request("records", 60.0))
    for step in steps:
        token, number = step["token"], step["step"]
        seen = step
        while seen["state"] in ("intended", "started"):
            emit(now("adopting", node, token=token, step=number, title=step["title"]))
            seen = channel.request("wait", WAIT + 30.0, token=token, step=number, seconds=WAIT)
        journal.append("adopted", node=node, token=token, step=number, plan=seen["plan"], title=seen["title"], state=seen["state"])
        emit(now("adopted", node, token=token, step=number, title=seen["title"], state=seen["state"]))
    if steps:
        token = leases.take(node, channel, "adopt")
        channel.request("settle", 60.0, token=token, steps=[[s["token"], s["step"]] for s in steps])
        leases.give_back(node, channel)
    return len(steps)
