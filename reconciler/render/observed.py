"""Facts of nodes for people: the verdict first, then a line a fact with its age; nodes that agree share a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.observed import Failure
from reconciler.model.seen import NodeSeen, Seen, is_unknown
from reconciler.render import facts as whole
from reconciler.render import notes
from reconciler.render.headlines import headline
from reconciler.render.headlines import notes as known
from reconciler.render.style import Style
from reconciler.render.text import count, duration, fold, safe, table

Found = Mapping[str, NodeSeen]
Never = Mapping[str, Sequence[str]]  # by node, the facts that nobody ever looked at
Looked = tuple[Found, Mapping[str, Failure], Never]


def render(looked: Looked, now: float, style: Style) -> list[str]:
    """Each fact of the catalogue in its order; `now` in Unix seconds."""
    found, _, _ = looked
    names = dict.fromkeys(name for node in found.values() for name in node.facts)
    rows = [row for name in names for row in _rows(name, found, now)]
    lines = []
    for row, (_, _, _, text) in zip(table(rows), rows, strict=True):
        colour = "yellow" if text.startswith("unknown: ") else "dim" if text.startswith("absent: ") else ""
        lines.append(style(row, colour) if colour else row)
    return _framed(looked, lines)


def _framed(looked: Looked, lines: Sequence[str]) -> list[str]:
    """The verdict before the facts, and after them who was not seen and what nobody ever looked at."""
    _, failures, never = looked
    parts = [[_verdict(looked)], lines, notes.failures(failures), _unseen(looked[0], never)]
    return [line for part in parts if part for line in ["", *part]][1:]


def _verdict(looked: Looked) -> str:
    found, failures, never = looked
    unknown = sum(is_unknown(fact.value) for node in found.values() for fact in node.facts.values())
    facts = sum(len(node.facts) for node in found.values())
    unseen = len(never.keys() - found.keys())
    parts = [
        f"{count(facts, 'fact')} of {count(len(found), 'node')}",
        f"{unknown} unknown",
        f"{count(len(failures), 'node')} not seen" if failures else "",
        f"{count(unseen, 'node')} never looked at" if unseen else "",
    ]
    return ", ".join(part for part in parts if part)


def _unseen(found: Found, never: Never) -> list[str]:
    """Nodes that lack the same share a line; of a node of which there is nothing at all, no list of everything."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for node, facts in never.items():
        alike.setdefault(tuple(facts) if node in found else (), []).append(node)
    return [f"  {fold(nodes)}: never looked at{': ' if facts else ''}{', '.join(facts)}" for facts, nodes in alike.items()]


def _rows(name: str, found: Found, now: float) -> list[tuple[str, str, str, str]]:
    """One row for each different answer: fact, nodes, age of the oldest of them, headline."""
    groups: dict[str, list[tuple[str, Seen]]] = {}
    for node, seen in found.items():
        if name in seen.facts:
            fact = seen.facts[name]
            text = headline(name, fact.value) + ("" if fact.boot_id == seen.boot_id else "; of an earlier boot")
            groups.setdefault(text, []).append((node, fact))
    rows = []
    for i, (text, members) in enumerate(groups.items()):
        age = duration(max(0.0, now - min(fact.taken for _, fact in members)))
        rows.append((name if i == 0 else "", fold(node for node, _ in members), age, text))
    return rows


def details(looked: Looked, now: float) -> list[str]:
    """Every field of every fact, node by node."""
    lines: list[str] = []
    for node, seen in looked[0].items():
        for name, fact in seen.facts.items():
            age = duration(max(0.0, now - fact.taken))
            lines += [f"{safe(node)} {name}, {age} old", *(f"  {line}" for line in whole.lines(fact.value))]
            lines += [*(f"  {line}" for line in known(name, fact.value)), ""]
    return _framed(looked, lines[:-1])


def costs(found: Found) -> list[str]:
    """What each fact cost on the node that paid most for it."""
    rows = [("fact", "wall ms", "CPU ms", "bytes")]
    names = dict.fromkeys(name for node in found.values() for name in node.facts)
    for name in names:
        paid = [node.facts[name].cost for node in found.values() if name in node.facts]
        known = [cost for cost in paid if cost is not None]
        if known:
            rows.append((name, *_most([(c.milliseconds, c.cpu_milliseconds, c.bytes) for c in known])))
    owns = [node.own for node in found.values() if node.own]
    if owns:
        rows.append(("all, and the program itself", *_most([(c.milliseconds, c.cpu_milliseconds, c.bytes) for c in owns])))
    return table(rows)


def _most(costs: Sequence[tuple[float, float, int]]) -> tuple[str, str, str]:
    wall, cpu, size = (max(column) for column in zip(*costs, strict=True))
    return f"{wall:.1f}", f"{cpu:.1f}", str(size)


def data(looked: Looked, now: float) -> dict[str, Any]:
    """The same for programs: values as they are, ages in seconds, what a fact cost in milliseconds and bytes."""
    found, failures, never = looked
    nodes = {}
    for node, seen in found.items():
        facts = {
            name: {
                "value": fact.value,
                "age": round(max(0.0, now - fact.taken), 3),
                "taken": round(fact.taken, 3),
                "boot_id": fact.boot_id,
                **(
                    {"ms": fact.cost.milliseconds, "cpu_ms": fact.cost.cpu_milliseconds, "bytes": fact.cost.bytes}
                    if fact.cost
                    else {}
                ),
            }
            for name, fact in seen.facts.items()
        }
        own = {"ms": seen.own.milliseconds, "cpu_ms": seen.own.cpu_milliseconds} if seen.own else None
        nodes[node] = {"boot_id": seen.boot_id, "facts": facts, "spent": own}
    failed = {name: {"kind": why.kind, "reason": why.reason} for name, why in failures.items()}
    return {"nodes": nodes, "failures": failed, "never": {name: list(facts) for name, facts in never.items()}}
