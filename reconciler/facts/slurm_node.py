"""A node as Slurm describes it: from the fields of `scontrol show node`, under which sinfo and its JSON are read too."""

from __future__ import annotations

import re
from typing import NamedTuple

from reconciler.facts import raw, scalars
from reconciler.model.fact import Absent, Fact, Unknown, Value

# sinfo(1), NODE STATE CODES, under the names that newer Slurm writes in words
_SUFFIX = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_STATE = re.compile(r"([A-Za-z_]+)([*~#!%$@^-]{0,9})")
# slurm.h and sinfo(1): long and short names, base states and flags
_WORDS = frozenset(
    (
        *("ALLOC", "ALLOCATED", "BLOCK", "BLOCKED", "BOOT", "CLOUD", "COMP", "COMPLETING", "DOWN", "DRAIN", "DRAINED", "DRAINING"),
        *("DRNG", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "ERR", "ERROR", "EXTERNAL", "FAIL", "FAILG", "FAILING", "FUTR", "FUTURE"),
        *("INVAL", "INVALID_REG", "MAINT", "MAINTENANCE", "MIX", "MIXED", "NOT_RESPONDING", "NO_RESPOND", "NPC", "PERFCTRS"),
        *("PLANNED", "PLND", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_DRAIN", "POWER_UP", "POW_DN"),
        *("POW_UP", "REBOOT", "REBOOT_CANCELED", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED", "RESUME", "RESV", "UNDRAIN"),
        *("IDLE", "UNK", "UNKNOWN"),
    )
)
_NOT_SHOWN = Unknown("NotShown")
_NOTHING = ("(null)", "N/A", "n/a", "None", "none", "")
_GRES = re.compile(r"gpu(?::([A-Za-z0-9_.-]+))??:([0-9]{1,6})(?:\(|,|$)")
_TRES_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=([0-9]{1,6})(?:,|$)")
_FEWER = re.compile(r"gres/gpu count reported lower than configured \(([0-9]{1,6}) < ([0-9]{1,6})\)")
_REASON = re.compile(r"(.*?) ?\[([^\[\]@]+)@([0-9T:-]+)\]")


class Node(NamedTuple):
    """One node; Unknown(NotShown) is what the form does not show.

    `states`: upper case, the base state first, marks as words. `gpus_configured`: Gres, else the roll-up gres/gpu of CfgTRES, else
    the reason. `gpus_typed` is part of that, not more. `gpus_allocated`: by type, `gpu` the roll-up. `gpus_reported`: what the node
    itself found when it was drained for too few. Memory in MiB. `cpus_effective` leaves out those kept for the system.
    """

    name: str
    states: Fact[tuple[str, ...]]
    gres: Fact[str]
    gres_used: Fact[str]
    gpus_configured: Fact[int]
    gpus_typed: Fact[dict[str, int]]
    gpus_allocated: Fact[dict[str, int]]
    gpus_reported: Fact[int]
    allocated_tres: Fact[dict[str, str]]
    cpus: Fact[int]
    cpus_effective: Fact[int]
    memory_mib: Fact[int]
    free_memory_mib: Fact[int]
    reason: Fact[str]
    reason_by: Fact[str]
    reason_at: Fact[str]
    slurm: Fact[str]
    kernel: Fact[str]


def is_state(cell: str) -> bool:
    """Whether every word of a cell is a state of a node; what marks it is left out."""
    return all(part and part[1].upper() in _WORDS for part in map(_STATE.fullmatch, cell.split("+")[:50]))


def states(cell: str) -> Fact[tuple[str, ...]]:
    """`IDLE+DRAIN+INVALID_REG`, `down*`: all of it in upper case."""
    found: list[str] = []
    for word in cell.split("+")[:50]:
        part = _STATE.fullmatch(word)
        if not part:
            return scalars.strange(cell, "UnreadableState")
        found += [part[1].upper(), *(_SUFFIX[mark] for mark in part[2])]
    return Value(tuple(found))


def _shown(fields: dict[str, str], key: str) -> Fact[str]:
    if key not in fields:
        return _NOT_SHOWN
    return Absent("NotSet") if fields[key] in _NOTHING else Value(fields[key])


def _count(fields: dict[str, str], key: str) -> Fact[int]:
    found = _shown(fields, key)
    return scalars.whole(found.value) if isinstance(found, Value) else found


def _typed(tres: Fact[str]) -> Fact[dict[str, int]]:
    """GPUs of a TRES list by type; `gpu` is the roll-up over all types."""
    if not isinstance(tres, Value):
        return tres
    return Value({kind or "gpu": int(count) for kind, count in _TRES_GPU.findall(tres.value)})


def _configured(fields: dict[str, str]) -> Fact[int]:
    gres, tres = _shown(fields, "Gres"), _typed(_shown(fields, "CfgTRES"))
    if isinstance(gres, Value):
        return Value(sum(int(count) for _, count in _GRES.findall(gres.value)))
    if isinstance(tres, Value) and "gpu" in tres.value:
        return Value(tres.value["gpu"])
    if fewer := _FEWER.search(fields.get("Reason", "")):
        return Value(int(fewer[2]))
    return Absent("NoGpu") if isinstance(gres, Absent) or isinstance(tres, Value) else _NOT_SHOWN


def _tres(found: Fact[str], shown: bool) -> Fact[dict[str, str]]:
    """A TRES list: an empty one is nothing."""
    if isinstance(found, Absent) and shown:
        return Value({})
    if not isinstance(found, Value):
        return found
    pairs = (part.partition("=") for part in found.value.split(","))
    return Value({key: value for key, equals, value in pairs if equals})


def _reason(fields: dict[str, str]) -> tuple[Fact[str], Fact[str], Fact[str]]:
    """Text, user and time of `Reason=text [user@time]`."""
    found = _shown(fields, "Reason")
    if not isinstance(found, Value):
        return found, found, found
    by, at = _shown(fields, "ReasonBy"), _shown(fields, "ReasonAt")
    signed = _REASON.fullmatch(found.value) if found.value.endswith("]") and found.value.count("[") < 5 else None
    return (Value(signed[1]), Value(signed[2]), Value(signed[3])) if signed else (found, by, at)


def _kernel(found: Fact[str]) -> Fact[str]:
    """`Linux 5.14.0-687.el9.x86_64 #1 SMP ...`: the second word."""
    words = found.value.split(None, 2) if isinstance(found, Value) else []
    if isinstance(found, Value):
        return Value(words[1]) if len(words) > 1 and words[0] == "Linux" else scalars.strange(found.value, "UnreadableOs")
    return found


def node(fields: dict[str, str]) -> Fact[Node]:
    """`fields` under the names of scontrol. Without a name it is Unknown."""
    name = fields.get("NodeName", "")
    if not name or len(name) > 255:
        return Unknown("NoName", raw.clean(name[:400], 120))
    reason, by, at = _reason(fields)
    typed, fewer = _typed(_shown(fields, "CfgTRES")), _FEWER.search(fields.get("Reason", ""))
    allocated = _shown(fields, "AllocTRES")
    return Value(
        Node(
            name=name,
            states=states(fields["State"]) if fields.get("State") else _NOT_SHOWN,
            gres=_shown(fields, "Gres"),
            gres_used=_shown(fields, "GresUsed"),
            gpus_configured=_configured(fields),
            gpus_typed=Value({k: n for k, n in typed.value.items() if k != "gpu"}) if isinstance(typed, Value) else typed,
            gpus_allocated=Value({}) if isinstance(allocated, Absent) else _typed(allocated),
            gpus_reported=Value(int(fewer[1])) if fewer else _NOT_SHOWN,
            allocated_tres=_tres(allocated, "AllocTRES" in fields),
            cpus=_count(fields, "CPUTot"),
            cpus_effective=_count(fields, "CPUEfctv"),
            memory_mib=_count(fields, "RealMemory"),
            free_memory_mib=_count(fields, "FreeMem"),
            reason=reason,
            reason_by=by,
            reason_at=at,
            slurm=_shown(fields, "Version"),
            kernel=_kernel(_shown(fields, "OS")),
        )
    )
