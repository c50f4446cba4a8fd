"""NVIDIA devices on the PCI bus of a running node, as the kernel has them: true also where the driver is not there or fails."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import given, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

# PCI Code and ID Assignment: display controllers (VGA, 3D, other), bridges of another kind; NVIDIA's vendor id
_GPU, _SWITCH = ("0x0300", "0x0302", "0x0380"), ("0x0680",)
_VENDOR = "0x10de"
ASK = Ask("pci", json.dumps({"vendor": _VENDOR, "classes": [*_GPU, *_SWITCH]}), 10.0, quick=True)
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_HEX = re.compile(r"0x([0-9a-f]{2,8})\Z")
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")
_TOTAL = re.compile(r"^TOTAL_ERR_[A-Z]{3,8} (\d{1,19})$", re.MULTILINE)
_NO_WIDTH = (0, 63, 255)  # no link, and what all ones read as: the device does not answer


@dataclass(frozen=True, slots=True)
class Aer:
    """Errors that PCI Express' Advanced Error Reporting counted since boot, all kinds together."""

    correctable: Fact[int]
    nonfatal: Fact[int]
    fatal: Fact[int]


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One function. Ids are four hexadecimal digits; `subsystem` is `vendor:device`. Speeds in GT/s, widths in lanes.

    An idle GPU lowers its speed. `answers` is False where its configuration reads as all ones: it fell off the bus.
    `driver`: Absent(NotBound) where none has it. `numa_node`: Absent(NoNumaNode) where the firmware names none.
    """

    address: str
    device: Fact[str]
    subsystem: Fact[str]
    revision: Fact[str]
    driver: Fact[str]
    answers: Fact[bool]
    speed: Fact[float]
    speed_max: Fact[float]
    width: Fact[int]
    width_max: Fact[int]
    numa_node: Fact[int]
    enabled: Fact[bool]
    power: Fact[str]
    aer: Aer


@dataclass(frozen=True, slots=True)
class PciGpus:
    """`unread`: devices that may be of NVIDIA, whose class or vendor could not be read. `proc`: as the driver names its GPUs."""

    gpus: tuple[PciDevice, ...]
    switches: tuple[PciDevice, ...]
    unread: tuple[str, ...]
    proc: Fact[tuple[str, ...]]


def parse(raws: tuple[Raw, ...]) -> Fact[PciGpus]:
    """Absent(NoDevices) where the bus has neither GPU nor switch of NVIDIA, Unknown where it cannot be looked at."""
    found = inventory(raws[0])
    if isinstance(found, Value) and not (found.value.gpus or found.value.switches or found.value.unread):
        return Absent("NoDevices")
    return found


def inventory(answer: Raw | None) -> Fact[PciGpus]:
    """The same for other facts: a bus without NVIDIA devices is an empty value."""
    said = raw.fragment(answer)
    if not isinstance(said, Value):
        return said
    item = said.value if isinstance(said.value, Mapping) else {}
    if "error" in given.mapping(item, "devices") or not isinstance(item.get("devices"), Mapping):
        why = given.text(item, "devices", "NoPciBus")
        return why if isinstance(why, Unknown) else Unknown("NoPciBus")
    gpus: list[PciDevice] = []
    switches: list[PciDevice] = []
    unread: list[str] = []
    for address, about in sorted(given.mapping(item, "devices").items()):
        if not _ADDRESS.match(address) or not isinstance(about, Mapping):
            unread.append(raw.clean(address, 40))
            continue
        kind, vendor = given.text(about, "class"), given.text(about, "vendor")
        if not isinstance(kind, Value) or vendor != Value(_VENDOR):
            unread.append(address)
        elif kind.value.startswith(_GPU):
            gpus.append(_device(address, about))
        elif kind.value.startswith(_SWITCH):
            switches.append(_device(address, about))
    return Value(PciGpus(tuple(gpus), tuple(switches), tuple(unread), given.texts(item, "proc", "DriverNotLoaded")))


def count(found: Fact[PciGpus]) -> Fact[int]:
    """GPUs on the bus; Unknown where one more may be among what could not be read."""
    if not isinstance(found, Value):
        return found if isinstance(found, Unknown) else Unknown("NoPciBus")
    return Unknown("UnreadDevices", ", ".join(found.value.unread[:8])) if found.value.unread else Value(len(found.value.gpus))


def _device(address: str, about: Mapping[str, Any]) -> PciDevice:
    width = given_whole(about, "current_link_width")
    node = given_whole(about, "numa_node")
    return PciDevice(
        address=address,
        device=_hex(about, "device"),
        subsystem=_pair(_hex(about, "subsystem_vendor"), _hex(about, "subsystem_device")),
        revision=_hex(about, "revision"),
        driver=_clean(given.text(about, "driver", "NotBound")),
        answers=_answers(given.text(about, "config")),
        speed=_speed(about, "current_link_speed"),
        speed_max=_speed(about, "max_link_speed"),
        width=_width(width),
        width_max=_width(given_whole(about, "max_link_width")),
        numa_node=Absent("NoNumaNode") if node == Value(-1) else node,
        enabled=_enabled(given_whole(about, "enable")),
        power=_clean(given.text(about, "power_state")),
        aer=Aer(*(_total(about, f"aer_dev_{grade}") for grade in ("correctable", "nonfatal", "fatal"))),
    )


def given_whole(about: Mapping[str, Any], name: str) -> Fact[int]:
    """The number that a file of /sys holds."""
    said = given.text(about, name)
    if not isinstance(said, Value):
        return said
    whole = re.fullmatch(r"-?\d{1,9}", said.value, re.ASCII)
    return Value(int(whole[0])) if whole else Unknown("NotANumber", raw.clean(said.value, 80))


def _clean(fact: Fact[str]) -> Fact[str]:
    return Value(raw.clean(fact.value, 80)) if isinstance(fact, Value) else fact


def _hex(about: Mapping[str, Any], name: str) -> Fact[str]:
    said = given.text(about, name)
    if not isinstance(said, Value):
        return said
    found = _HEX.match(said.value)
    return Value(found[1]) if found else Unknown("UnreadableCell", raw.clean(said.value, 80))


def _pair(one: Fact[str], two: Fact[str]) -> Fact[str]:
    if not isinstance(one, Value):
        return one
    return Value(f"{one.value}:{two.value}") if isinstance(two, Value) else two


def _answers(config: Fact[str]) -> Fact[bool]:
    return Value(config.value != "ffffffff") if isinstance(config, Value) else config


def _speed(about: Mapping[str, Any], name: str) -> Fact[float]:
    said = given.text(about, name, "NotPciExpress")
    if not isinstance(said, Value):
        return said
    found = _SPEED.match(said.value)
    return Value(float(found[1])) if found else Unknown("UnreadableCell", raw.clean(said.value, 80))


def _width(width: Fact[int]) -> Fact[int]:
    if isinstance(width, Absent):
        return Absent("NotPciExpress")
    return Unknown("NoLink", str(width.value)) if isinstance(width, Value) and width.value in _NO_WIDTH else width


def _enabled(found: Fact[int]) -> Fact[bool]:
    """`enable` counts how often it was enabled."""
    return Value(found.value > 0) if isinstance(found, Value) else found


def _total(about: Mapping[str, Any], name: str) -> Fact[int]:
    said = given.text(about, name, "NoAer")
    if not isinstance(said, Value):
        return said
    found = _TOTAL.search(said.value)
    return Value(int(found[1])) if found else Unknown("Missing", name)


def stable(value: Any) -> Any:
    """Everything but speed, power state and error counts."""
    kept = ("address", "device", "subsystem", "revision", "driver", "answers", "speed_max", "width", "width_max", "numa_node")
    parts = {name: [{key: device[key] for key in kept} for device in value[name]] for name in ("gpus", "switches")}
    return {**parts, "unread": value["unread"]}


FACT = LiveFact("pci-gpus", lambda about: (ASK,), parse, stable)
