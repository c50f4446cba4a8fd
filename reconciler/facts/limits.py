"""Limits of real processes: of services, of sshd and Slurm's daemons, and of whatever holds a GPU."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, raw, scalars
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

COMMANDS = ("sshd", "slurmd", "slurmctld", "slurmstepd")
# name in proc(5), /proc/PID/limits -> ours, that of limits.conf(5)
_NAMES = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max stack size": "stack",
    "Max core file size": "core",
}
_ROW = re.compile(r"(Max [a-z ]{1,30}?) {2,}(\S{1,30}) +(\S{1,30})(?: +[a-z]{1,20})? *")
UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class Limit:
    """`unlimited`, or a number as text: bytes for memlock, stack and core, else a count."""

    soft: Fact[str]
    hard: Fact[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Processes of one unit and command with equal limits. `gpu`: whether they have a /dev/nvidia file open."""

    unit: Fact[str]
    command: Fact[str]
    gpu: Fact[bool]
    limits: dict[str, Fact[Limit]]
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """`unread`: how many processes could not be looked at."""

    groups: tuple[Group, ...]
    unread: Fact[int]


def _amount(cell: str) -> Fact[str]:
    return Value(cell) if cell == UNLIMITED or isinstance(scalars.whole(cell), Value) else scalars.strange(cell)


def table(text: Fact[str]) -> dict[str, Fact[Limit]]:
    """/proc/PID/limits: fixed columns, blanks in the names."""
    if not isinstance(text, Value):
        return dict.fromkeys(_NAMES.values(), text)
    rows = {found[1]: found for line in text.value[:10_000].splitlines() if (found := _ROW.fullmatch(line))}
    return {
        ours: Value(Limit(_amount(rows[name][2]), _amount(rows[name][3]))) if name in rows else Unknown("Missing", name)
        for name, ours in _NAMES.items()
    }


def _group(said: Any) -> Group:
    row = answers.mapping(said)
    gpu, pids = row.get("gpu"), row.get("pids")
    numbers = [answers.number(pid) for pid in pids] if isinstance(pids, list) else []
    return Group(
        unit=_named(row.get("unit"), "NoUnit"),
        command=_named(row.get("command"), "NoName"),
        gpu=Value(gpu) if isinstance(gpu, bool) else Unknown("PermissionDenied" if gpu is None else "WrongShape"),
        limits=table(answers.text(row.get("limits"))),
        pids=tuple(number.value for number in numbers if isinstance(number, Value)),
    )


def _named(said: Any, missing: str) -> Fact[str]:
    return Absent(missing) if said == "" else answers.text(said, missing)


def parse(raws: tuple[Raw, ...]) -> Fact[Limits]:
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    said = answers.mapping(found.value)
    groups, unread = said.get("groups"), said.get("unread")
    if not isinstance(groups, list):
        return Unknown("WrongShape", "groups")
    return Value(
        Limits(tuple(map(_group, groups)), Value(len(unread)) if isinstance(unread, list) else Unknown("WrongShape", "unread"))
    )


def stable(value: Any) -> Any:
    """Without process numbers, and without what comes and goes with a job: services only."""
    services = [g for g in value["groups"] if isinstance(g["unit"], str) and g["unit"].endswith(".service")]
    rows = {json.dumps([g["unit"], g["command"], g["limits"]], sort_keys=True) for g in services}
    return sorted(rows)


_ASKED = json.dumps({"commands": list(COMMANDS), "proc": "/proc"})
FACT = LiveFact("limits", lambda about: (Ask("limits", _ASKED),), parse, stable, slow=True)
