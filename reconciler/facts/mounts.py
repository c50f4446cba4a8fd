"""What is mounted on a node, how, and how full it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, raw, scalars
from reconciler.facts.disk_space import Space
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

SECONDS = 3.0
# types that hold nothing on a disk, in memory or at a server that could be full: /proc/filesystems, `nodev`
PSEUDO = (
    *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs", "fuse.gvfsd-fuse"),
    *("fuse.lxcfs", "fusectl", "hugetlbfs", "mqueue", "nfsd", "nsfs", "proc", "pstore", "resctrl", "rpc_pipefs", "securityfs"),
    *("selinuxfs", "sysfs", "tracefs"),
)
# types that ask no other machine and no other process
LOCAL = (
    "btrfs",
    "devtmpfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "iso9660",
    "overlay",
    "ramfs",
    "squashfs",
    "tmpfs",
    "vfat",
    "xfs",
    "zfs",
)
# each of their subvolumes has a device number of its own, which mountinfo does not say
_OWN_DEVICES = ("btrfs", "zfs")
_OCTAL = re.compile(r"\\([0-3][0-7]{2})")
_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo, see proc(5).

    `root`: what of the file system is mounted, `/` where all of it is. `propagation`: shared:N, master:N, propagate_from:N,
    unbindable, as written; nothing is private. `bytes` and `inodes`: Absent(Pseudo) where no space is behind it, Absent(Covered)
    where another mount hides it, Absent(NotCounted) where the file system counts none. `available`: to a user other than root.
    """

    id: int
    parent: int
    device: str
    root: str
    point: str
    options: tuple[str, ...]
    propagation: tuple[str, ...]
    type: str
    source: str
    super_options: tuple[str, ...]
    bytes: Fact[Space]
    inodes: Fact[Space]


def unescaped(text: str) -> str:
    r"""`\040` and the like as the bytes that they stand for."""
    if "\\" not in text:
        return text
    data = _OCTAL.sub(lambda found: chr(int(found[1], 8)), text.encode().decode("latin-1"))
    return data.encode("latin-1").decode("utf-8", "replace")


def line(text: str, space: Mapping[str, Any]) -> Fact[Mount]:
    """One line; Unknown(UnreadableRow) where it has not the documented fields."""
    front, dash, back = text.partition(" - ")
    words, rest = front.split(" "), back.split(" ")
    numbers = [scalars.whole(word) for word in words[:2]]
    if not dash or len(words) < 6 or len(rest) != 3 or not _DEVICE.fullmatch(words[2]) or len(numbers) != 2:
        return Unknown("UnreadableRow", raw.clean(text[:400], 120))
    own, parent = numbers
    if not isinstance(own, Value) or not isinstance(parent, Value):
        return Unknown("UnreadableRow", raw.clean(text[:400], 120))
    point, kind = unescaped(words[4]), unescaped(rest[0])
    blocks, inodes = _space(space.get(str(own.value)), words[2], kind, pseudo=kind in PSEUDO or _kernels(point))
    return Value(
        Mount(
            id=own.value,
            parent=parent.value,
            device=words[2],
            root=unescaped(words[3]),
            point=point,
            options=tuple(words[5].split(",")),
            propagation=tuple(words[6:]),
            type=kind,
            source=unescaped(rest[1]),
            super_options=tuple(rest[2].split(",")),
            bytes=blocks,
            inodes=inodes,
        )
    )


def _kernels(point: str) -> bool:
    return point in ("/proc", "/sys") or point.startswith(("/proc/", "/sys/"))


def _space(said: Any, device: str, kind: str, *, pseudo: bool) -> tuple[Fact[Space], Fact[Space]]:
    """Bytes and inodes from a fragment's row: [device, unit, blocks, free, available, files, files free, files available]."""
    why: Fact[Space]
    if said is None:
        why = Absent("Pseudo") if pseudo else Absent("Covered")
        return why, why
    if not isinstance(said, list) or len(said) != 8:
        why = answers.error(said, "Covered")
        return why, why
    if said[0] != device and kind not in _OWN_DEVICES:
        return Absent("Covered"), Absent("Covered")
    numbers = [answers.number(item) for item in said[1:]]
    if not all(isinstance(number, Value) for number in numbers):
        why = Unknown("NotANumber", raw.clean(repr(said)[:200], 80))
        return why, why
    unit, *counts = (number.value for number in numbers if isinstance(number, Value))
    return _counted(counts[:3], unit), _counted(counts[3:], 1)


def _counted(counts: list[int], unit: int) -> Fact[Space]:
    """statvfs(3): total, free and available; a total of 0 is a file system that does not count."""
    total, free, available = counts
    if not total:
        return Absent("NotCounted")
    used: Fact[int] = Value((total - free) * unit) if free <= total else Unknown("OutOfRange", f"{free} of {total} free")
    return Value(Space(Value(total * unit), used, Value(available * unit)))


def parse(raws: tuple[Raw, ...]) -> Fact[tuple[Fact[Mount], ...]]:
    """In the order of the kernel; a later mount hides an earlier one at the same point."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    said = answers.mapping(found.value)
    text, space = said.get("mountinfo"), said.get("space")
    if not isinstance(text, str) or not isinstance(space, dict):
        return Unknown("WrongShape", "mountinfo")
    rows = tuple(line(row, space) for row in text.split("\n") if row)
    return Value(rows) if rows else Unknown("NoRows")


def stable(value: Any) -> Any:
    """What is mounted where and how; no numbers that differ after each boot, nothing of the kernel's own, no space."""
    rows = [row for row in value if "point" in row and row["bytes"] not in ({"absent": "Pseudo"}, {"absent": "Covered"})]
    return sorted(([row[k] for k in ("point", "type", "source", "root", "options", "super_options")] for row in rows), key=repr)


_ASKED = json.dumps({"pseudo": sorted(PSEUDO), "local": sorted(LOCAL), "seconds": SECONDS})
FACT = LiveFact("mounts", lambda about: (Ask("mounts", _ASKED, 2 * SECONDS + 10),), parse, stable)
