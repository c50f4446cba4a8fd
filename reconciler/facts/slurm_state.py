"""What Slurm says of a node, asked from the node itself, and which of its daemons run there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reconciler.facts import raw, services, slurm
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Run, Unknown, Value

DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "munge")


@dataclass(frozen=True, slots=True)
class SlurmState:
    """`node`: `scontrol show node`; `listed`: the same node as `sinfo -N` lists it. `daemons`: those that run."""

    node: Fact[slurm.Slurm]
    listed: Fact[slurm.Slurm]
    daemons: Fact[tuple[str, ...]]


def parts(about: About) -> tuple[Part, ...]:
    return (
        Run(("scontrol", "show", "node", about.node, "--oneliner"), 15.0),
        Run(("sinfo", "-h", "-N", "-n", about.node, "-o", "%N|%T|%G|%c"), 15.0),
        Ask("devices", json.dumps({"groups": services.GROUPS, "limit": 1}), quick=True),
    )


def said(found: Raw) -> Fact[slurm.Slurm]:
    """A command's answer; where it failed, what it says of that, which may be that the controller does not answer."""
    text = raw.command_text(found)
    if isinstance(text, Value):
        return slurm.parse(text.value)
    if isinstance(text, Unknown) and text.why == "CommandFailed":
        words = (found.err + b"\n" + found.out).decode("utf-8", "replace") + "\n"
        understood = slurm.parse(words)
        return text if isinstance(understood, Unknown) and understood.why != "ControllerUnreachable" else understood
    return text


def parse(raws: tuple[Raw, ...]) -> Fact[SlurmState]:
    """Absent(NotInstalled) where there is neither of the two commands, and no daemon runs."""
    node, listed = said(raws[0]), said(raws[1])
    running = services.running(raw.fragment(raws[2]))
    daemons = Value(tuple(name for name in running.value if name in DAEMONS)) if isinstance(running, Value) else running
    nothing = Absent("NotInstalled")
    slurm_runs = isinstance(daemons, Value) and any(name != "munge" for name in daemons.value)
    return nothing if node == nothing and listed == nothing and not slurm_runs else Value(SlurmState(node, listed, daemons))


def stable(value: Any) -> Any:
    """States and what is configured; no allocation, no free memory."""
    kept = ("name", "states", "gres", "gpus_configured", "cpus", "memory_mib", "reason", "slurm")
    rows = value["node"].get("nodes", [value["node"]])
    return {
        "nodes": [{k: row[k] for k in kept} if "name" in row else row for row in rows],
        "daemons": value["daemons"],
    }


FACT = LiveFact("slurm", parts, parse, stable, slow=True)
