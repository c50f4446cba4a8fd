"""Ask nodes the questions that were chosen elsewhere, and bring the answers home unjudged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.errors import Garbled
from reconciler.model.fact import Ask, Facts, Probe, Reading, Spent
from reconciler.model.observed import Failure, NodeState
from reconciler.pool import Pool
from reconciler.transport import program
from reconciler.transport.base import Channel
from reconciler.transport.probe import decode, encode

MARGIN = 30.0  # seconds beyond the slowest part's own deadline: scheduling, transfer, a busy node


def deadline_of(probes: tuple[Probe, ...]) -> float:
    """How long one request may take: commands run side by side, each within its own deadline."""
    return MARGIN + max((getattr(part, "deadline", 5.0) for probe in probes for part in probe.parts), default=0.0)


def ask(channel: Channel, probes: tuple[Probe, ...], *, records: bool = False) -> tuple[Facts, Mapping[str, Any]]:
    """All `probes` in one round trip; with `records` also what the node program remembers (steps, inventory, lease)."""
    wanted = {probe.key: encode(probe) for probe in probes}
    needed = {part.fragment for probe in probes for part in probe.parts if isinstance(part, Ask)}
    sources = {"fragments": {name: program.fragment(name) for name in sorted(needed)}} if needed else {}
    answer = channel.request("probe", deadline_of(probes), facts=wanted, records=records, **sources)
    found = answer.get("facts")
    if not isinstance(found, Mapping):
        raise Garbled("WrongShape", detail="facts")
    recorded = channel.hello.recorded
    taken = time.time() if recorded is None else recorded
    boot_id = channel.hello.boot_id
    readings = {probe.key: Reading(probe.key, decode(probe, found.get(probe.key)), taken, boot_id) for probe in probes}
    remembered = answer.get("records", {})
    if not isinstance(remembered, Mapping):
        raise Garbled("WrongShape", detail="records")
    return Facts(readings, _spent(answer.get("spent"))), remembered


def _spent(said: Any) -> Spent | None:
    """Only shown to people: what has not its shape is not worth an error."""
    try:
        return Spent(float(said["ms"]), float(said["cpu"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def node_state(channel: Channel, facts: Facts, remembered: Mapping[str, Any]) -> NodeState:
    """Facts and memory of one node as a value. Raises Garbled where its memory has not the shape that we wrote."""
    try:
        inventory = {str(name): str(entry["spec"]) for name, entry in remembered.get("inventory", {}).items()}
        running = tuple(str(s["title"]) for s in remembered.get("steps", ()) if s["state"] in ("intended", "started"))
    except (AttributeError, KeyError, TypeError) as e:
        raise Garbled("WrongShape", detail=f"records: {e}") from None
    return NodeState(facts, channel.hello.boot_id, inventory, running)


def observe(
    pool: Pool,
    first: Mapping[str, tuple[Probe, ...]],
    follow_up: Callable[[str, Facts], tuple[Probe, ...]],
    done: Callable[[str], None] | None = None,
) -> dict[str, NodeState | Failure]:
    """Ask every node its first questions, then those that the answers make necessary: one or two round trips a node."""

    def work(name: str) -> NodeState:
        channel = pool.channel(name)
        facts, remembered = ask(channel, first[name], records=True)
        state = node_state(channel, facts, remembered)
        more = () if state.running else follow_up(name, facts)
        if not more:
            return state
        further, _ = ask(channel, more)
        return NodeState(Facts({**facts.readings, **further.readings}), state.boot_id, state.inventory)

    return pool.each(first, work, done)
