"""Equality first, then figures: every tool interleaved in one run, each call checked to have seen what all have to see."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers import work
from benchmarks.peers.meter import Cost
from benchmarks.peers.site import Site
from benchmarks.peers.tools import Seen, Tool


class Unequal(Exception):
    """The tools did not do the same work: nothing that was measured would count."""


@dataclass(frozen=True)
class Row:
    """One call. `round_trip`: milliseconds that the relay adds; `load`: of the machine before the call."""

    tool: str
    part: str
    nodes: int
    round_trip: float
    repeat: int
    load: float
    cost: Cost

    def flat(self) -> dict[str, Any]:
        """As the raw results keep it."""
        kept = {key: value for key, value in asdict(self).items() if key != "cost"}
        return {**kept, **{k: round(v, 6) for k, v in asdict(self.cost).items()}}


def call(site: Site, tool: Tool) -> tuple[list[tuple[str, Cost]], dict[str, Seen]]:
    """The whole work once. Raises Unequal where the tool failed."""
    costs, outputs = [], []
    for one in tool.calls():
        cost, status, output = site.meter.run(one)
        if status != 0 or not output:
            words = (one.cwd / "stderr").read_text()[-2000:]
            raise Unequal(f"{tool.name} {one.part} ended with {status}\n{output[-2000:]}\n{words}")
        costs.append((one.part, cost))
        outputs.append(output)
    return costs, tool.read(outputs)


def compare(tool: Tool, seen: Mapping[str, Seen], changes: Mapping[str, frozenset[str]], facts: Mapping[str, Any]) -> None:
    """Raises Unequal where the tool saw other changes than these, or other facts than the first tool did."""
    if set(seen) != set(changes):
        raise Unequal(f"{tool.name} looked at {sorted(seen)}, not at {sorted(changes)}")
    for node, wanted in changes.items():
        if seen[node].changes != wanted:
            raise Unequal(f"{tool.name} would change {sorted(seen[node].changes)} on {node}, not {sorted(wanted)}")
        if normal(seen[node].facts) != facts[node]:
            told = normal(seen[node].facts)
            other = {k: (told.get(k), v) for k, v in facts[node].items() if told.get(k) != v}
            raise Unequal(f"{tool.name} tells other facts of {node}: {other}")


def normal(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as text, for each tool has numbers and booleans of its own."""
    return {key: str(value).lower() for key, value in facts.items()}


def equal(site: Site, tools: Sequence[Tool]) -> dict[str, Any]:
    """Converge all nodes with ours; on the first, every tool sees no change, the drift and nothing else, and again no change.

    The evidence, for the results. `tools` are those of the first node alone. Raises Unequal.
    """
    apply, names = site.ours().call("apply", "apply"), [site.endpoints[0].name]
    heal(site, apply)
    clean = {name: frozenset[str]() for name in names}
    facts = _all(site, tools, clean)
    node = site.lab.nodes[names[0]]
    for command, _ in work.DRIFT:
        node.run(command)
    drifted = {**clean, names[0]: frozenset(task for _, task in work.DRIFT)}
    found = _all(site, tools, drifted)
    heal(site, apply)
    _all(site, tools, clean)
    moved = sorted(key for key, value in facts[names[0]].items() if found[names[0]][key] != value)
    return {"facts": facts, "drift": sorted(drifted[names[0]]), "facts_moved_by_drift": moved, "tools": [t.name for t in tools]}


def heal(site: Site, apply: Any) -> None:
    cost, status, output = site.meter.run(apply)
    if status != 0:
        raise Unequal(f"apply ended with {status}\n{output}\n{(apply.cwd / 'stderr').read_text()}")
    print(f"apply: {cost.wall:.1f} s", file=sys.stderr, flush=True)


def _all(site: Site, tools: Sequence[Tool], changes: Mapping[str, frozenset[str]]) -> dict[str, dict[str, str]]:
    """Every tool against these changes and against the facts that the first tool tells, which are given back."""
    first: dict[str, dict[str, str]] = {}
    for tool in tools:
        _, seen = call(site, tool)
        first = first or {node: normal(one.facts) for node, one in seen.items()}
        compare(tool, seen, changes, first)
        print(f"{tool.name} sees {sorted(set().union(*changes.values())) or 'no change'}", file=sys.stderr, flush=True)
    return first


def rows(site: Site, tools: Sequence[Tool], round_trip: float, repeats: int) -> Iterator[Row]:
    """All tools in turn, `repeats` times; who begins moves on by one each time. Raises Unequal."""
    site.distance.ask(f"delay {round_trip}")
    for repeat in range(repeats):
        at = repeat % len(tools)
        facts: dict[str, dict[str, str]] = {}
        for tool in (*tools[at:], *tools[:at]):
            load = os.getloadavg()[0]
            costs, seen = call(site, tool)
            facts = facts or {node: normal(one.facts) for node, one in seen.items()}
            compare(tool, seen, dict.fromkeys(facts, frozenset()), facts)
            for part, cost in costs:
                yield Row(tool.name, part, len(facts), round_trip, repeat, round(load, 2), cost)
