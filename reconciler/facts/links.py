"""Network interfaces: /sys/class/net."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, raw, scalars
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Read, Unknown, Value

_UP = 0x1  # IFF_UP, linux/if.h
# ARPHRD_*, linux/if_arp.h
_TYPES = {1: "ethernet", 32: "infiniband", 772: "loopback", 768: "tunnel", 776: "sit", 778: "gre", 65534: "none"}
# columns of /proc/net/dev, net/core/net-procfs.c of Linux: dropped has what was missed in it, frame all errors of a frame's form
COUNTERS = (
    *("rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast"),
    *("tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo", "tx_collisions", "tx_carrier", "tx_compressed"),
)
_FILES = (
    "operstate",
    "carrier",
    "carrier_changes",
    "speed",
    "duplex",
    "mtu",
    "address",
    "type",
    "flags",
    "ifalias",
    "device/numa_node",
    "bonding/mode",
    "bonding/slaves",
    "bonding/mii_status",
    "bridge/bridge_id",
)
_LINKS = ("device", "device/driver", "master")


@dataclass(frozen=True, slots=True)
class Bond:
    """A bond and the interfaces it is made of."""

    mode: Fact[str]
    members: Fact[tuple[str, ...]]
    mii: Fact[str]


@dataclass(frozen=True, slots=True)
class Link:
    """One interface. `speed` in Mbit/s. `up`: switched on; `carrier`: the cable carries; `state`: the kernel's word for both.

    `master`: the bond or bridge that it belongs to. `pci`: the device's address, Absent(Virtual) where no device is behind it.
    `counters` since the driver was loaded.
    """

    up: Fact[bool]
    state: Fact[str]
    carrier: Fact[bool]
    carrier_changes: Fact[int]
    speed: Fact[int]
    duplex: Fact[str]
    mtu: Fact[int]
    address: Fact[str]
    type: Fact[str]
    alias: Fact[str]
    driver: Fact[str]
    pci: Fact[str]
    numa_node: Fact[int]
    master: Fact[str]
    bridge: bool
    bond: Fact[Bond]
    counters: Fact[dict[str, Fact[int]]]


def is_up(said: Any) -> Fact[bool]:
    """Bit IFF_UP of `flags`: 0x1003."""
    found = answers.text(said)
    if not isinstance(found, Value):
        return found
    try:
        return Value(bool(int(found.value, 16) & _UP))
    except ValueError:
        return scalars.strange(found.value)


def _invalid(said: Any) -> bool:
    return bool(answers.mapping(said).get("error") == "EINVAL")


def speed(said: Any, up: Fact[bool]) -> Fact[int]:
    """Mbit/s. -1 is SPEED_UNKNOWN of linux/ethtool.h; EINVAL is an interface that is off, or a driver that knows no speed."""
    if _invalid(said):
        return Absent("InterfaceOff") if isinstance(up, Value) and not up.value else Absent("NoSpeed")
    found = answers.whole(said)
    return Unknown("NotKnownToDriver", str(found.value)) if isinstance(found, Value) and found.value <= 0 else found


def _carrier(said: Any) -> Fact[bool]:
    return Absent("InterfaceOff") if _invalid(said) else answers.flag(said)


def numa_node(said: Any, missing: str = "Virtual") -> Fact[int]:
    """-1 is NUMA_NO_NODE: the firmware does not say it."""
    found = answers.whole(said, missing)
    return Absent("NoNumaNode") if isinstance(found, Value) and found.value < 0 else found


def _type(said: Any) -> Fact[str]:
    found = answers.whole(said)
    return Value(_TYPES.get(found.value, str(found.value))) if isinstance(found, Value) else found


def _bond(files: Mapping[str, Any]) -> Fact[Bond]:
    if not any(path.startswith("bonding/") for path in files):
        return Absent("NoBond")
    mode, members = answers.text(files.get("bonding/mode")), answers.text(files.get("bonding/slaves"))
    return Value(
        Bond(
            mode=Value(mode.value.split()[0]) if isinstance(mode, Value) else mode,
            members=Value(tuple(members.value.split())) if isinstance(members, Value) else members,
            mii=answers.text(files.get("bonding/mii_status")),
        )
    )


def _link(files: Mapping[str, Any], counters: Fact[dict[str, Fact[int]]]) -> Link:
    up = is_up(files.get("flags"))
    return Link(
        up=up,
        state=answers.text(files.get("operstate")),
        carrier=_carrier(files.get("carrier")),
        carrier_changes=answers.whole(files.get("carrier_changes")),
        speed=speed(files.get("speed"), up),
        duplex=Absent("InterfaceOff" if up == Value(False) else "NoSpeed")
        if _invalid(files.get("duplex"))
        else answers.text(files.get("duplex")),
        mtu=answers.whole(files.get("mtu")),
        address=answers.text(files.get("address")),
        type=_type(files.get("type")),
        alias=answers.text(files.get("ifalias")),
        driver=answers.base(answers.text(files.get("device/driver"), "Virtual")),
        pci=answers.base(answers.text(files.get("device"), "Virtual")),
        numa_node=numa_node(files.get("device/numa_node")),
        master=answers.base(answers.text(files.get("master"), "NoMaster")),
        bridge="bridge/bridge_id" in files,
        bond=_bond(files),
        counters=counters,
    )


def counters(text: str) -> dict[str, Fact[dict[str, Fact[int]]]]:
    """/proc/net/dev by interface: two lines of header, then `name: numbers`."""
    found: dict[str, Fact[dict[str, Fact[int]]]] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line[:2000].rpartition(":")
        cells = rest.split()
        if colon and len(cells) == len(COUNTERS):
            found[name.strip()] = Value(dict(zip(COUNTERS, map(scalars.whole, cells), strict=True)))
        else:
            found[name.strip()] = Unknown("ColumnCount", raw.clean(line[:400], 80))
    return found


def parse(raws: tuple[Raw, ...]) -> Fact[dict[str, Link]]:
    """By name. Absent(NoInterfaces) where there is none."""
    folders, table = answers.members(raw.fragment(raws[0]), "net"), raw.file_text(raws[1])
    if not isinstance(folders, Value):
        return folders
    counted = counters(table.value) if isinstance(table, Value) else {}
    why: Fact[dict[str, Fact[int]]] = Unknown("Missing", "/proc/net/dev") if isinstance(table, Value) else table
    found = {}
    for folder, files in folders.value.items():
        name = folder.rpartition("/")[2]
        found[name] = _link(answers.mapping(files), counted.get(name, why))
    return Value(found) if found else Absent("NoInterfaces")


def stable(value: Any) -> Any:
    return {name: {k: v for k, v in link.items() if k not in ("counters", "carrier_changes")} for name, link in value.items()}


_ASKED = json.dumps({"groups": {"net": {"at": "/sys/class/net/*", "files": list(_FILES), "links": list(_LINKS)}}, "limit": 4096})
FACT = LiveFact("links", lambda about: (Ask("devices", _ASKED, quick=True), Read("/proc/net/dev", 1 << 20)), parse, stable)
