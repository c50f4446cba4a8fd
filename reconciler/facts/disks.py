"""Block devices and software RAID: /sys/block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Value

_SECTOR = 512  # bytes; /sys counts in these whatever the device's own block is (Documentation/ABI/stable/sysfs-block)
_FILES = (
    "size",
    "ro",
    "removable",
    "queue/rotational",
    "device/model",
    "device/vendor",
    "device/serial",
    "device/firmware_rev",
    "device/transport",
    "device/state",
    "dm/name",
    "md/level",
    "md/array_state",
    "md/degraded",
    "md/raid_disks",
    "md/sync_action",
)
# no loop, ram or zram device: there may be a thousand, and none is a disk; rbd and rnbd are
_PATTERNS = {"disks": "/sys/block/[!lrz]*", "remote": "/sys/block/r[bn]*"}


@dataclass(frozen=True, slots=True)
class Array:
    """A software RAID. `state`: clean, active, inactive ...; `degraded`: disks it lacks, Absent for a level that can lack none."""

    level: Fact[str]
    state: Fact[str]
    disks: Fact[int]
    degraded: Fact[int]
    action: Fact[str]


@dataclass(frozen=True, slots=True)
class Disk:
    """One device. `bytes`: its size, 0 for one without a medium. `name`: what the device mapper calls it."""

    bytes: Fact[int]
    rotational: Fact[bool]
    read_only: Fact[bool]
    removable: Fact[bool]
    vendor: Fact[str]
    model: Fact[str]
    serial: Fact[str]
    firmware: Fact[str]
    transport: Fact[str]
    state: Fact[str]
    name: Fact[str]
    array: Fact[Array]


def _array(files: Mapping[str, Any]) -> Fact[Array]:
    if not any(path.startswith("md/") for path in files):
        return Absent("NoArray")
    return Value(
        Array(
            level=answers.text(files.get("md/level")),
            state=answers.text(files.get("md/array_state")),
            disks=answers.whole(files.get("md/raid_disks")),
            degraded=answers.whole(files.get("md/degraded")),
            action=answers.text(files.get("md/sync_action")),
        )
    )


def _disk(files: Mapping[str, Any]) -> Disk:
    size = answers.whole(files.get("size"))
    return Disk(
        bytes=Value(size.value * _SECTOR) if isinstance(size, Value) else size,
        rotational=answers.flag(files.get("queue/rotational")),
        read_only=answers.flag(files.get("ro")),
        removable=answers.flag(files.get("removable")),
        vendor=answers.text(files.get("device/vendor")),
        model=answers.text(files.get("device/model")),
        serial=answers.text(files.get("device/serial")),
        firmware=answers.text(files.get("device/firmware_rev")),
        transport=answers.text(files.get("device/transport")),
        state=answers.text(files.get("device/state")),
        name=answers.text(files.get("dm/name")),
        array=_array(files),
    )


def parse(raws: tuple[Raw, ...]) -> Fact[dict[str, Disk]]:
    """By the kernel's name. Absent(NoDevices) where there is none."""
    answer = raw.fragment(raws[0])
    found: dict[str, Disk] = {}
    for group in _PATTERNS:
        folders = answers.members(answer, group)
        if not isinstance(folders, Value):
            return folders
        found |= {folder.rpartition("/")[2]: _disk(answers.mapping(files)) for folder, files in folders.value.items()}
    return Value(found) if found else Absent("NoDevices")


_ASKED = json.dumps({"groups": {name: {"at": at, "files": list(_FILES)} for name, at in _PATTERNS.items()}, "limit": 4096})
FACT = LiveFact("disks", lambda about: (Ask("devices", _ASKED, quick=True),), parse)
