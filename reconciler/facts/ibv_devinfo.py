"""RDMA devices as libibverbs sees them: `ibv_devinfo`, plain or -v."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.facts import keyed, raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_NUMBERED = re.compile(r"(\S.{0,60}?) \(([0-9]{1,3})\)\Z")  # `PORT_ACTIVE (4)`
# ibv_port_state_str of libibverbs
_STATES = frozenset({"PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"})


@dataclass(frozen=True, slots=True)
class Port:
    """One port. MTUs in bytes; `active_mtu` is printed for a port that is down too. LIDs: Absent(Unassigned) without a number."""

    state: Fact[str]
    max_mtu: Fact[int]
    active_mtu: Fact[int]
    lid: Fact[int]
    sm_lid: Fact[int]
    link_layer: Fact[str]


@dataclass(frozen=True, slots=True)
class Device:
    """One device, without its `transport`: that is InfiniBand for RoCE too. `missing_ports`: of `port_count`, not in the text."""

    firmware: Fact[str]
    vendor_id: Fact[int]
    part_id: Fact[int]
    board_id: Fact[str]
    node_guid: Fact[str]
    port_count: Fact[int]
    ports: Mapping[int, Port]
    missing_ports: Fact[int]


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices by name, in the order of the text. `names` are theirs; the rest are values of all ports, sorted, each once.

    `states`: `mlx5_0/1` -> PORT_ACTIVE.
    """

    devices: Mapping[str, Device]
    names: tuple[str, ...]
    states: Mapping[str, Fact[str]]
    active_mtus: tuple[int, ...]
    link_layers: tuple[str, ...]
    firmwares: tuple[str, ...]


@dataclass(slots=True)
class _Block:
    said: dict[str, str] = field(default_factory=dict)
    ports: dict[int, dict[str, str]] = field(default_factory=dict)


def parse(output: str) -> Fact[Devices]:
    """Every device of the text, by its keys: the indent may be lost. Absent(NoDevices) where the tool finds none."""
    content, cut = text.ended(output)
    blocks = _blocks(content.split("\n"))
    if not blocks:
        if "No IB devices found" in (content + cut)[:2000]:
            return Absent("NoDevices")
        return Unknown("NoDevices", raw.clean(output[:1000]))
    devices = {name: _device(block) for name, block in blocks.items()}
    ports = {f"{name}/{number}": port for name, device in devices.items() for number, port in device.ports.items()}
    return Value(
        Devices(
            devices=devices,
            names=tuple(devices),
            states={name: port.state for name, port in ports.items()},
            active_mtus=tuple(sorted({port.active_mtu.value for port in ports.values() if isinstance(port.active_mtu, Value)})),
            link_layers=tuple(sorted({port.link_layer.value for port in ports.values() if isinstance(port.link_layer, Value)})),
            firmwares=tuple(sorted({device.firmware.value for device in devices.values() if isinstance(device.firmware, Value)})),
        )
    )


def _blocks(lines: list[str]) -> dict[str, _Block]:
    blocks: dict[str, _Block] = {}
    block: _Block | None = None
    here: dict[str, str] = {}
    for line in lines:
        pair = keyed.split(line)
        if not pair:
            continue
        key, value = pair
        if key == "hca_id" and value:
            block = blocks.setdefault(value[:64], _Block())
            here = block.said
        elif block and key == "port" and value.isascii() and value.isdigit() and len(value) < 4:
            here = block.ports.setdefault(int(value), {})
        elif block:
            here.setdefault(key, value)
    return blocks


def _device(block: _Block) -> Device:
    said = block.said
    count = keyed.number(said, "phys_port_cnt")
    return Device(
        firmware=keyed.word(said, "fw_ver"),
        vendor_id=keyed.number(said, "vendor_id"),
        part_id=keyed.number(said, "vendor_part_id"),
        board_id=keyed.word(said, "board_id"),
        node_guid=keyed.word(said, "node_guid"),
        port_count=count,
        ports={number: _port(port) for number, port in sorted(block.ports.items())},
        missing_ports=Value(max(count.value - len(block.ports), 0)) if isinstance(count, Value) else count,
    )


def _port(said: Mapping[str, str]) -> Port:
    state = keyed.word(said, "state")
    if isinstance(state, Value):
        found = _NUMBERED.match(state.value)
        word = found[1] if found else state.value
        state = Value(word) if word in _STATES else Unknown("UnreadableState", raw.clean(state.value, 80))
    return Port(
        state=state,
        max_mtu=_mtu(said, "max_mtu"),
        active_mtu=_mtu(said, "active_mtu"),
        lid=keyed.lid(said, "port_lid"),
        sm_lid=keyed.lid(said, "sm_lid"),
        link_layer=keyed.word(said, "link_layer"),
    )


def _mtu(said: Mapping[str, str], key: str) -> Fact[int]:
    """Bytes; the number in parentheses is libibverbs' own and shows that the cell is whole."""
    found = keyed.number(said, key)
    if isinstance(found, Value) and not _NUMBERED.match(said[key]):
        return Unknown("MayBeCut", raw.clean(said[key], 80))
    return found
