"""The results for people: peers.md from peers.json, nothing measured and nothing decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.peers.summary import OURS, PEERS, TARGETS, TOOLS, Cell, axes, cells, further, ratio
from benchmarks.peers.work import PARTS, PLAN

HEADINGS = {
    "plan": "15 resources: `reconcile plan`, `ansible-playbook --check --diff`, `pyinfra --dry --diff`",
    "facts": "20 facts: `reconcile observe`, a playbook that gathers, a deploy that asks",
}
Found = Mapping[tuple[str, int, float], Cell]

# What the design expected, from measurements of November 2026 (2 cores, sshd endpoints of one machine, 15 tasks): controller CPU in
# ms of a further node and in s fixed, KB sent and received a node.
MODEL = {
    ("plan", "reconcile"): (21, 0.05, "5.3 / 23"),
    ("plan", "ansible"): (2100, 2.0, "3235 / 142"),
    ("plan", "mitogen"): (1600, 4.0, "490 / 23"),
    ("plan", "pyinfra"): (250, 0.7, "25 / 150"),
    ("facts", "reconcile"): (21, 0.05, "5.3 / 23"),
    ("facts", "ansible"): (285, 1.1, "330 / 22"),
}


def as_json(kept: Mapping[str, Any]) -> str:
    """The raw results: one row a line, so that two runs can be compared."""
    rows = ",\n  ".join(json.dumps(row) for row in kept["rows"])
    rest = json.dumps({key: value for key, value in kept.items() if key != "rows"}, indent=1)
    return f'{rest[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n'


def markdown(kept: Mapping[str, Any]) -> str:
    """The page: conditions, ratios, a table for each part, the cost model."""
    found = {part: cells(kept["rows"], part) for part in PARTS}
    pieces = [_conditions(kept), _ratios(kept, found)]
    pieces += [_table(part, found[part]) for part in PARTS]
    if all(len(values) > 1 for values in axes(found[PLAN])):
        pieces.append(_model(found))
    return "\n".join(line for piece in pieces for line in piece) + "\n"


HEAD = """# reconcile beside its peers

`python -m benchmarks.peers`, {date}, {cores} cores ({processor}), {memory_gib} GiB, kernel {kernel}.
ansible-core {ansible}, mitogen {mitogen}, pyinfra {pyinfra} (paramiko {paramiko}) on Python {peers_python};
Ours on Python {our_python}; {openssh}. Load of the machine before the calls: {least_load} to {most_load}.
Measured was commit {commit} and on top of it{changed}:{ahead}

STAND-IN: {stand_in}.
So wall times are upper bounds: the nodes' own CPU is part of them, and so is what else ran on the machine.

- **Work**: two calls of each tool, on nodes where nothing is to do: {resources} resources in {tasks} tasks (plan), and {facts}
  facts read and shown (facts). The peers could do both in one call, and would save one start and one login a node.
- **Equal**: in this run each of {tools} saw no change on the converged node;
  the {drifts} drifts that were made by hand ({drift}), and nothing else;
  no change once they were healed; and each time the same {facts} facts. Each call that was measured had to show no change and the
  same facts on every node.
- **Tuned**: Ansible with pipelining, ControlPersist, as many forks as nodes, only the fact subsets that are needed, packages of
  one wish in one task, and curve25519 as key exchange; pyinfra with `--parallel` and without `-y`, which skips the detection.
- **Cold**: no connection and no cache of facts is kept from call to call. All tools in turn; repeats: {repeats}. Medians.
- **CPU**: user and system of the whole process tree, by a control group (cpuacct), kept ssh masters included; nodes likewise.
- **Distance**: a relay in user space (this kernel has no netem), in every call; measured: {distances}.
  Its CPU is in no figure.
- **Bytes**: payload of TCP at the relay. **Turns**: times that a controller sent again after it had been sent something, an upper
  bound of round trips.
"""


def _conditions(kept: Mapping[str, Any]) -> Iterator[str]:
    where, v, same = kept["conditions"], kept["conditions"]["versions"], kept["equality"]
    loads = sorted(row["load"] for row in kept["rows"])
    more = {
        "commit": where["commit"][:12],
        "ahead": "".join(f"\n- {subject}" for subject in reversed(where["ahead"])) or " nothing",
        "changed": "; files were changed" if where["changed"] else "",
        "ansible": v["ansible-core"],
        "peers_python": v["python"],
        "our_python": v["our python"],
        "least_load": loads[0],
        "most_load": loads[-1],
        "resources": kept["work"]["resources"],
        "tasks": len(kept["work"]["tasks"]),
        "facts": len(kept["work"]["facts"]),
        "tools": ", ".join(same["tools"]),
        "drifts": len(same["drift"]),
        "drift": ", ".join(same["drift"]),
        "repeats": ", ".join(f"{times} with {nodes}" for nodes, times in kept["repeats"].items()) + " nodes",
        "distances": ", ".join(f"{real} ms for {ms}" for ms, real in kept["round_trips"].items()),
    }
    yield HEAD.format(**{**v, **where, **more})


def _table(part: str, found: Found) -> Iterator[str]:
    sizes, trips = axes(found)
    yield f"## {HEADINGS[part]}\n"
    yield (
        "| nodes | round trip ms | tool | controller CPU ms a node (range) | KB a node sent / received | turns / connections a node"
        " | node CPU ms | wall s (range) | |\n|---|---|---|---|---|---|---|---|---|"
    )
    for nodes in sizes:
        for trip in trips:
            for tool in TOOLS:
                c = found[tool, nodes, trip]
                times = "" if tool == OURS else f"CPU x{ratio(found, tool, nodes, trip):.1f}"
                yield (
                    f"| {nodes} | {trip:.0f} | {tool} | {c.cpu_ms:.0f} ({c.cpu_range_ms[0]:.0f} to {c.cpu_range_ms[1]:.0f}) "
                    f"| {c.sent_kb:.0f} / {c.received_kb:.0f} | {c.turns:.0f} / {c.connections:.1f} | {c.node_cpu_ms:.0f} "
                    f"| {c.wall:.1f} ({c.wall_range[0]:.1f} to {c.wall_range[1]:.1f}) | {times} |"
                )
    yield ""


def _ratios(kept: Mapping[str, Any], found: Mapping[str, Found]) -> Iterator[str]:
    sizes, trips = axes(found[PLAN])
    shown = {**found, "both": cells(kept["rows"])}
    yield f"## Times our controller CPU a node, {sizes[-1]} nodes\n"
    yield "| | " + " | ".join(f"{name}, {trip:.0f} ms" for name in shown for trip in trips) + " | target for plan |"
    yield "|---" * (len(shown) * len(trips) + 2) + "|"
    for tool in PEERS:
        cell = [f"{ratio(f, tool, sizes[-1], trip):.1f}" for f in shown.values() for trip in trips]
        yield f"| {tool} | {' | '.join(cell)} | {TARGETS.get(tool, '')} |"
    yield "\n![controller CPU, wall and bytes](peers.svg)\n"


def _model(found: Mapping[str, Found]) -> Iterator[str]:
    yield "## Beside the cost model of the design\n"
    yield "| | CPU ms a further node: model | here | fixed s: model | here | KB sent / received a node: model | here |"
    yield "|---|---|---|---|---|---|---|"
    for (part, tool), model in MODEL.items():
        sizes, trips = axes(found[part])
        slope, fixed = further(found[part], tool, trips[0])
        c = found[part][tool, sizes[-1], trips[0]]
        yield (
            f"| {tool}, {part} | {model[0]} | {slope:.1f} | {model[1]} | {fixed:.2f} | {model[2]} "
            f"| {c.sent_kb:.1f} / {c.received_kb:.1f} |"
        )
    yield f"\n{REASONS}"


REASONS = """- **Ours, fixed**: the model counted one bare interpreter and an ssh client. Ours reads the manifests at their commit
  (seven calls of git), checks them, and loads pydantic, GitPython, fabric and paramiko.
- **Ours, a further node**: the model started an ssh process for each node; ours logs in within the process, and then parses,
  compares and renders.
- **Ours, sent and received**: nothing is installed on a node, so the node program travels with every login: 18.7 KB compressed.
  A plan asks only for what its resources rest on, so less comes back.
- **Peers, plan**: the model's run had 15 tasks; here packages of one wish are one task, and facts are a call of their own. All
  three are cheaper than the model, pyinfra by more than half, so our distance to it is smaller than the model's.
- **Facts**: ours shows seven facts whole, all units and links among them, where a deploy of pyinfra picks twenty values: little
  cheaper than pyinfra at 32 nodes, and dearer at one.
- **Load**: other work ran beside this. CPU rises with the load, and it was not the same at every call: see the ranges.
"""
