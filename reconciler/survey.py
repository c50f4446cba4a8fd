"""Look at nodes fact by fact: the catalogue's probes in one round trip a node, each answer understood and dated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact
from reconciler.model.desired import DesiredNode
from reconciler.model.fact import Facts, Raw
from reconciler.model.observed import Failure
from reconciler.model.seen import Cost, NodeSeen, Seen
from reconciler.observe import ask
from reconciler.pool import Pool


def about(nodes: Mapping[str, DesiredNode], name: str, cursors: Mapping[str, str], environments: Sequence[str] = ()) -> About:
    """What the manifests say that a node's facts depend on, and where the last look at its logs ended.

    `environments`: patterns of Python environments beside those of the design.
    """
    names = {other.name: other.access.host for other in nodes.values()}
    return About(name, names, (*About().environments, *environments), cursors=cursors)


def _cost(raws: tuple[Raw, ...]) -> Cost:
    """Parts of one fact run side by side: the slowest is what is waited for."""
    return Cost(
        sum(len(raw.out) + len(raw.err) for raw in raws),
        max((raw.milliseconds for raw in raws), default=0.0),
        round(sum(raw.cpu_milliseconds for raw in raws), 1),
    )


def understood(facts: Sequence[LiveFact], found: Facts, boot_id: str) -> NodeSeen:
    """Raw answers as values, each with the time of its reading."""
    seen = {}
    for fact in facts:
        reading = found.readings.get(fact.name)
        if reading is not None:
            value = plain(fact.read(reading.raws))
            seen[fact.name] = Seen(value, reading.taken, reading.boot_id, _cost(reading.raws))
    spent = found.spent
    return NodeSeen(boot_id, seen, Cost(0, spent.milliseconds, spent.cpu_milliseconds) if spent else None)


def survey(
    pool: Pool,
    abouts: Mapping[str, About],
    facts: Sequence[LiveFact],
    done: Callable[[str], None] | None = None,
) -> dict[str, NodeSeen | Failure]:
    """All `facts` of all nodes, one round trip a node. A node that fails is its Failure, and stops no other."""

    def work(name: str) -> NodeSeen:
        channel = pool.channel(name)
        found, _ = ask(channel, tuple(fact.probe(abouts[name]) for fact in facts))
        return understood(facts, found, channel.hello.boot_id)

    return pool.each(abouts, work, done)


def chosen(facts: Sequence[LiveFact], names: Iterable[str], *, fast: bool) -> tuple[LiveFact, ...]:
    """The facts that were asked for by name, or all, or only those that cost a node little."""
    wanted = set(names)
    return tuple(f for f in facts if (f.name in wanted if wanted else not (fast and f.slow)))
