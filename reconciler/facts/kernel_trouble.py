"""Lines of a kernel log about the host around the GPUs: memory, disks, file systems, network links, the processor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.model.fact import Fact, Unknown, Value

# a link that is down stands before the driver's name: a line is one event
NEEDLES = (
    ("ut of memory: Kill", "oom-kill"),
    ("[Hardware Error]", "hardware-error"),
    ("I/O error", "io-error"),
    ("I/O Error", "io-error"),
    ("EXT4-fs error", "fs-error"),
    ("orruption detected", "fs-error"),
    ("Corruption of in-memory data", "fs-error"),
    ("emounting filesystem read-only", "fs-error"),
    ("xfs_do_force_shutdown", "fs-error"),
    ("ink is Down", "link-down"),
    ("ink is down", "link-down"),
    ("ink down", "link-down"),
    ("Link Down", "link-down"),
    ("link status definitely down", "link-down"),
    ("nvme nvme", "nvme-error"),
    ("mlx5_core", "mlx5-error"),
)
KINDS = frozenset(kind for _, kind in NEEDLES)

_KILLED = re.compile(r"Kill(?:ed)? process (\d{1,10})(?:, UID \d{1,10},)? \(([^)\n]{1,64})\)")
_NVME = re.compile(r"(?<!Shutdown )timeout|controller is down|not ready|fail|abort|reset|removing|error", re.IGNORECASE)
_MLX5 = re.compile(r"error|fail|time(?:d )?out|health|syndrome|insufficient power|high temperature", re.IGNORECASE)
_DEVICE = {
    "io-error": re.compile(r"\bdev(?:ice)? ([\w.-]{1,32}),|\b(nvme\d{1,4}n\d{1,4})\b|\((\w[\w.-]{0,31})\): (?:\w+ )?I/O error"),
    "fs-error": re.compile(r"\((?:device )?(\w[\w.-]{0,31})\)"),
    "nvme-error": re.compile(r"\bnvme (nvme\d{1,4}):"),
    "link-down": re.compile(r"(?:^|[\s:])([a-zA-Z][\w.-]{0,31}): (?:NIC )?[Ll]ink (?:is )?[Dd]own|for interface (\w[\w.-]{0,31})"),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the line names."""

    device: Fact[str]
    process: Fact[str]
    pid: Fact[int]


def read(kind: str, message: str) -> Trouble | None:
    """None where the line tells of no trouble: drivers greet at boot, and an empty SATA port has no link."""
    said = Unknown("NotSaid")
    if kind == "nvme-error" and not _NVME.search(message):
        return None
    if kind == "mlx5-error" and not _MLX5.search(message):
        return None
    if kind == "link-down" and "SATA link down" in message:
        return None
    killed = _KILLED.search(message) if kind == "oom-kill" else None
    found = _DEVICE[kind].search(message) if kind in _DEVICE else None
    names = [name for name in found.groups() if name] if found else []
    return Trouble(
        device=Value(names[0]) if names else said,
        process=Value(killed[2]) if killed else said,
        pid=Value(int(killed[1])) if killed else said,
    )
