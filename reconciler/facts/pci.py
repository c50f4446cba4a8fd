"""PCI devices of a node as `lspci` prints them, plain or with -nn, -n, -D, -k, -v, -vv."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from reconciler.facts import keyed, raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_SLOT = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: |\Z)", re.IGNORECASE)
_CODE = re.compile(r"\[([0-9a-f]{4})\]\Z|\A([0-9a-f]{4})\Z")
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_BARE_IDS = re.compile(r"([0-9a-f]{4}):([0-9a-f]{4})\b")
_REVISION = re.compile(r"([0-9a-f]{2})\)")
_QUOTED, _BRACKETED = re.compile(r'"([^"]*)"'), re.compile(r" ?\[([0-9a-f]{4})\]\Z")
_MM_REVISION = re.compile(r'" -r([0-9a-f]{2})\b')
_LINK = re.compile(r"Speed ([0-9]{1,3}(?:\.[0-9])?)GT/s(?: \((\w{1,12})\))?, Width x([0-9]{1,2})(?: \((\w{1,12})\))?")
# https://admin.pci-ids.ucw.cz: vendors, and classes 03xx display, 0680 bridge of another kind (NVSwitch)
_NVIDIA, _MELLANOX = ("10de", "NVIDIA"), ("15b3", "Mellanox")
_DISPLAY = ("VGA compatible controller", "3D controller", "Display controller")
_NOT_SAID = Unknown("NotSaid")
_MORE = "-- more may follow --"
_NOT_ASKED = Unknown("NotAsked")
_DEAD = Value("ff")  # the whole configuration space reads as ones: the card no longer answers


class Model(NamedTuple):
    """What a device is, by its line: many devices of a machine are the same. Codes and ids are four hexadecimal digits."""

    class_name: Fact[str]
    class_code: Fact[str]
    name: Fact[str]
    vendor_id: Fact[str]
    device_id: Fact[str]
    revision: Fact[str]

    def made_by(self, vendor: tuple[str, str]) -> bool:
        """By number where the text has numbers, else by name."""
        if isinstance(self.vendor_id, Value):
            return self.vendor_id.value == vendor[0]
        return isinstance(self.name, Value) and self.name.value.startswith(vendor[1])

    def of_class(self, code: str, names: tuple[str, ...]) -> bool:
        """The same for its class, whose code begins with `code`."""
        if isinstance(self.class_code, Value):
            return self.class_code.value.startswith(code)
        return isinstance(self.class_name, Value) and self.class_name.value in names


@dataclass(frozen=True, slots=True)
class Details:
    """What the indented lines of -k, -v, -vv say. Absent(NotBound): there are some, and none names a driver.

    `link_gts`, `link_width` (lanes): how the PCI Express link runs now.
    """

    driver: Fact[str]
    modules: Fact[str]
    subsystem: Fact[str]
    link_gts: Fact[float]
    link_width: Fact[int]
    link_downgraded: Fact[bool]


class Device(NamedTuple):
    """One function. `slot` as printed; `address` with its domain, as /sys names it.

    `answers` is False where it is on the bus list but dead (`rev ff`, unknown header type).
    """

    slot: str
    address: str
    model: Model
    answers: Fact[bool]
    details: Fact[Details]


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices of the text, and the slots of those that a GPU node is asked for. `dead`: no longer answer.

    `strange_lines`: neither a device nor a detail of one.
    """

    devices: tuple[Device, ...]
    nvidia_gpus: tuple[str, ...]
    nvswitches: tuple[str, ...]
    mellanox: tuple[str, ...]
    dead: tuple[str, ...]
    strange_lines: int


def parse(output: str) -> Fact[Devices]:
    """Every device that the text names, even one whose line is cut. Unknown(NoDevices): any machine has some."""
    found: list[tuple[str, str, list[str]]] = []
    strange = 0
    whole, _ = text.ended(output)
    for line in whole.split("\n"):
        if line[:1].isspace():
            if found:
                found[-1][2].append(line)
        elif slot := _SLOT.match(line):
            found.append((slot[1], line[slot.end() :], []))
        elif line.strip():
            strange += 1
    if not found:
        return Unknown("NoDevices", raw.clean(output[:1000]))
    if found[-1][2] and "Kernel modules:" not in found[-1][2][-1]:
        found[-1][2].append(_MORE)  # the modules that fit are the last that lspci tells of a device
    devices = tuple(_device(*each) for each in found)
    nvidia = [device for device in devices if device.model.made_by(_NVIDIA)]
    return Value(
        Devices(
            devices=devices,
            nvidia_gpus=tuple(device.slot for device in nvidia if device.model.of_class("03", _DISPLAY)),
            nvswitches=tuple(device.slot for device in nvidia if device.model.of_class("0680", ("Bridge",))),
            mellanox=tuple(device.slot for device in devices if device.model.made_by(_MELLANOX)),
            dead=tuple(device.slot for device in devices if device.answers == Value(False)),
            strange_lines=strange,
        )
    )


def _device(slot: str, rest: str, lines: list[str]) -> Device:
    model = _model(rest)
    dead = model.revision == _DEAD or any("Unknown header type" in line for line in lines)
    whole = model.name is not keyed.MISSING
    return Device(
        slot=slot,
        address=(slot if slot.count(":") > 1 else "0000:" + slot).lower(),
        model=model,
        answers=Value(not dead) if dead or whole else keyed.MISSING,
        details=_details(lines) if lines else _NOT_ASKED,
    )


def _spaced(rest: str) -> str:
    """`lspci -mm`: "class" "vendor" "device" -ra1, each with [code] for -nn, as the other forms write them."""
    kind, vendor, device = (*_QUOTED.findall(rest), "", "", "")[:3]
    ids = (_BRACKETED.search(vendor), _BRACKETED.search(device))
    pair = f" [{ids[0][1]}:{ids[1][1]}]" if ids[0] and ids[1] else ""
    between = ":" if len(vendor) == len(device) == 4 else " "
    revised = _MM_REVISION.search(rest)
    name = f"{_BRACKETED.sub('', vendor)}{between}{_BRACKETED.sub('', device)}{pair}"
    return f"{kind}: {name}" + (f" (rev {revised[1]})" if revised else "")


@lru_cache(maxsize=1024)
def _model(rest: str) -> Model:
    if rest[:1] == '"':
        rest = _spaced(rest)
    kind, colon, name = rest.partition(": ")
    code = _CODE.search(kind) if colon and (len(kind) == 4 or kind[-1:] == "]") else None
    ids = ("[" in name and _IDS.findall(name)) or (name[4:5] == ":" and _BARE_IDS.findall(name[:10]))
    front, _, revised = name.partition(" (rev ")
    revision = _REVISION.match(revised)
    return Model(
        class_name=_text(kind[: code.start()] if code else kind, bool(colon)),
        class_code=Value(code[1] or code[2]) if code else _NOT_SAID,
        name=_text(front, bool(colon)),
        vendor_id=Value(ids[-1][0]) if ids else _NOT_SAID,
        device_id=Value(ids[-1][1]) if ids else _NOT_SAID,
        revision=Value(revision[1]) if revision else _NOT_SAID,
    )


def _details(lines: list[str]) -> Fact[Details]:
    said: dict[str, str] = {}
    for line in lines:
        if pair := keyed.split(line):
            said.setdefault(*pair)
    cut = lines[-1] is _MORE
    link = _LINK.search(said.get("lnksta", ""))
    return Value(
        Details(
            driver=_detail(said, "kernel driver in use", Unknown("MayBeCut") if cut else Absent("NotBound")),
            modules=_detail(said, "kernel modules", Unknown("MayBeCut") if cut else Absent("NoModule")),
            subsystem=_detail(said, "subsystem", Unknown("MayBeCut") if cut else Absent("NoSubsystem")),
            link_gts=Value(float(link[1])) if link else _NOT_SAID,
            link_width=Value(int(link[3])) if link else _NOT_SAID,
            link_downgraded=Value("downgraded" in (link[2], link[4])) if link else _NOT_SAID,
        )
    )


def _text(printed: str, whole: bool) -> Fact[str]:
    """A name; Unknown(Missing) where the line ends before it is whole."""
    return Value(printed.strip()) if whole and printed.strip() else keyed.MISSING


def _detail(said: dict[str, str], key: str, none: Absent | Unknown) -> Fact[str]:
    return Value(said[key]) if said.get(key) else none
