"""What has to hold of a site after an act: each answer is a list of sentences about what does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler import status
from reconciler.apply import journal
from reconciler.model.outcome import NodeOutcome
from tests.simulated.machine import Machine

if TYPE_CHECKING:
    from tests.simulated.world import World

CODES = {"failed": 3, "garbled": 3, "skipped": 3, "lost": 4, "unreachable": 4, "interrupted": 130, "superseded": 6}
WORST_FIRST = (130, 1, 6, 5, 7, 3, 4, 2, 0)  # as the design has it
OVER = ("done", "failed", "interrupted")
Key = tuple[str, int, int]


def tree(machine: Machine) -> dict[str, bytes]:
    """Every file that lasts on a node."""
    return {
        str(f.relative_to(machine.folder)): f.read_bytes()
        for top in ("etc", "lib")
        for f in (machine.folder / top).rglob("*")
        if f.is_file()
    }


def exit_of(outcomes: Mapping[str, NodeOutcome]) -> int:
    """The exit status that these ends come to."""
    codes = {CODES.get(o.end.value, 0) for o in outcomes.values()} | {2 for o in outcomes.values() if o.held} | {0}
    return next(code for code in WORST_FIRST if code in codes)


def journals(world: World) -> Iterator[str]:
    """Every journal can be read whole, its numbers rise by one, and no outcome is without its intent."""
    for name, folder in world.holders.items():
        records = journal.read(folder / "journal.jsonl")
        if [r["seq"] for r in records] != list(range(1, len(records) + 1)):
            yield f"the journal of {name} has gaps"
        meant = Counter(key(r) for r in records if r["type"] == "intent")
        yield from (f"{name} meant {k} {n} times" for k, n in meant.items() if n > 1)
        came = Counter(key(r) for r in records if r["type"] == "outcome")
        yield from (f"{name}: outcome of {k} {n} times, meant {meant[k]} times" for k, n in came.items() if n > meant[k])


def key(record: Mapping[str, Any]) -> Key:
    return record["node"], record["token"], record["step"]


def steps(world: World) -> Iterator[str]:
    """Nothing ran twice under one step."""
    for name, machine in world.machines.items():
        counted = Counter((token, number, command) for token, number, command, _ in machine.ran)
        yield from (f"{name}: command {k} ran {n} times" for k, n in counted.items() if n > 1)
    yield from (f"file {k} was written {n} times" for k, n in Counter(world.written).items() if n > 1)


def records_of(machine: Machine) -> list[dict[str, Any]]:
    found = [json.loads(f.read_text()) for f in (machine.folder / "lib/reconcile/steps").glob("*.json")]
    return sorted(found, key=lambda r: (r["token"], r["step"]))


def settled(world: World, controller: str) -> Iterator[str]:
    """After a good end by `controller`: every step's outcome is known to a journal as the node has it, nothing runs, and it has no
    lease left. One that ran out, of the other or of another boot, may stand where nothing had to be written."""
    told = _told(world)
    on_nodes: set[Key] = set()
    for name, machine in world.machines.items():
        for record in records_of(machine):
            on_nodes.add(key({**record, "node": name}))
            if not record["settled"]:
                yield f"{name}: step {record['token']}-{record['step']} ({record['state']}) is not settled"
            if record["state"] not in told.get((name, record["token"], record["step"]), ()):
                yield f"{name}: step {record['token']}-{record['step']} is {record['state']}, and no journal says so"
        if machine.units:
            yield f"{name}: units are left: {list(machine.units)}"
        lease = machine.folder / "lib/reconcile/lease.json"
        kept = json.loads(lease.read_text()) if lease.exists() else {"holder": ""}
        if kept["holder"] == controller and kept["boot_id"] == machine.boot_id:
            yield f"{name}: the lease was not given back"
        yield from _inventory(machine)
    for name, folder in world.holders.items():
        meant = {key(r) for r in journal.read(folder / "journal.jsonl") if r["type"] == "intent"}
        yield from (f"{name} meant {k}, which ran, and nobody knows its outcome" for k in meant - set(told) if k in on_nodes)


def _told(world: World) -> dict[Key, set[str]]:
    told: dict[Key, set[str]] = {}
    for folder in world.holders.values():
        for record in journal.read(folder / "journal.jsonl"):
            if record["type"] in ("outcome", "adopted") and record["state"] in OVER:
                told.setdefault(key(record), set()).add(record["state"])
    return told


def _inventory(machine: Machine) -> Iterator[str]:
    """It holds what the steps that were done brought, the latest of each resource; created by us once is created by us."""
    expected: dict[str, Any] = {}
    for record in records_of(machine):
        for name, entry in record["inventory"].items() if record["state"] == "done" else ():
            created = bool(entry["created"] or expected.get(name, {}).get("created"))
            expected[name] = {**entry, "created": created}
    file = machine.folder / "lib/reconcile/inventory.json"
    found = json.loads(file.read_text())["resources"] if file.exists() else {}
    if found != expected:
        yield f"{machine.name}: the inventory has {found}, and what was done is {expected}"
    ran = {(token, number) for token, number, _, _ in machine.ran}
    for record in records_of(machine):
        # a restart is done by another boot, and a lost power is one too
        never = "reboot" not in record and (record["token"], record["step"]) not in ran
        if record["state"] == "done" and record["commands"] and never:
            yield f"{machine.name}: step {record['token']}-{record['step']} is done and never ran"


def shown(folder: Path) -> Iterator[str]:
    """What `status` says after a good end."""
    found = status.nodes(journal.read(folder / "journal.jsonl"))
    yield from (f"status does not show {name} as settled" for name, node in found.items() if not node.settled and not node.held)
