"""InfiniBand and RoCE adapters as `ibstat` and `ibstatus` print them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.facts import keyed, raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_CA = re.compile(r"\s*CA:? '([^'\n]{1,64})'")
_PORT = re.compile(r"\s*Port ([0-9]{1,3}):\s*\Z")
_STATUS = re.compile(r"\s*Infiniband device '([^'\n]{1,64})' port ([0-9]{1,3}) status")
_STATE = re.compile(r"(?:[0-9]{1,2}: )?(\S.*)\Z")  # ibstatus puts the number first
# libibumad's and the kernel's words for a port that carries nothing yet
_NOT_ACTIVE = frozenset({"down", "init", "initializing", "armed", "active_defer", "activedefer", "nop"})
_SPEED = re.compile(r"\(([0-9]{1,2}X [^)\n]{1,20})\)")
_FAILED = re.compile(r"IB device '([^'\n]{1,64})' failed")


@dataclass(frozen=True, slots=True)
class Port:
    """One port. `state` and `physical_state` as printed; `rate_gbps` only of an active port: what a port that is down prints is
    left over. `speed`: `4X HDR`, where the tool says it. LIDs are Absent(Unassigned) on Ethernet and on ports that are down.
    """

    state: Fact[str]
    active: Fact[bool]
    physical_state: Fact[str]
    rate_gbps: Fact[float]
    speed: Fact[str]
    base_lid: Fact[int]
    sm_lid: Fact[int]
    guid: Fact[str]
    link_layer: Fact[str]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter (CA) and its ports by number. `missing_ports`: how many of `port_count` are not in the text."""

    type: Fact[str]
    firmware: Fact[str]
    node_guid: Fact[str]
    port_count: Fact[int]
    ports: Mapping[int, Port]
    missing_ports: Fact[int]


@dataclass(frozen=True, slots=True)
class Adapters:
    """All adapters by name, and what they come to.

    `states`: `mlx4_0/1` -> state; `distinct_states`: of all ports. `down`, `not_linked` (-> physical state): ports known to be so,
    called by the adapter, or `mlx4_0/1` where it has several. `rates_gbps`: of active ports. `failed`: adapters that the tool
    could not read. `errors`: what it complained of.
    """

    adapters: Mapping[str, Adapter]
    types: tuple[str, ...]
    states: Mapping[str, Fact[str]]
    distinct_states: tuple[str, ...]
    down: tuple[str, ...]
    not_linked: Mapping[str, str]
    rates_gbps: tuple[float, ...]
    link_layers: tuple[str, ...]
    failed: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass(slots=True)
class _Block:
    """Keys of one adapter and of its ports, as read."""

    said: dict[str, str] = field(default_factory=dict)
    ports: dict[int, dict[str, str]] = field(default_factory=dict)


def parse(output: str) -> Fact[Adapters]:
    """Every adapter of the text. Absent(NoDevices) where the tool finds none, Unknown(NoAdapters) where the text has none."""
    whole, cut = text.ended(output)
    blocks, errors = _blocks(whole.split("\n"))
    if not blocks:
        if any(words in line for line in (*errors, cut) for words in ("sys files not found", "can't list IB device names")):
            return Absent("NoDevices")
        return Unknown("NoAdapters", raw.clean(output[:1000]))
    adapters = {name: _adapter(block) for name, block in blocks.items()}
    return Value(_adapters(adapters, errors))


def _blocks(lines: list[str]) -> tuple[dict[str, _Block], list[str]]:
    blocks: dict[str, _Block] = {}
    errors: list[str] = []
    here: dict[str, str] = {}
    block = _Block()
    for line in lines:
        if ":" not in line and "'" not in line:
            continue
        if found := _CA.match(line):
            block = blocks.setdefault(found[1], _Block())
            here = block.said
        elif found := _STATUS.match(line):
            block = blocks.setdefault(found[1], _Block())
            here = block.ports.setdefault(int(found[2]), {})
        elif found := _PORT.match(line):
            here = block.ports.setdefault(int(found[1]), {})
        elif line.startswith(("ibpanic", "ibstat:", "ibstatus:", "Fatal error")):
            errors.append(raw.clean(line))
        elif pair := keyed.split(line):
            here.setdefault(*pair)
    return blocks, errors


def _adapter(block: _Block) -> Adapter:
    count = keyed.number(block.said, "number of ports")
    return Adapter(
        type=keyed.word(block.said, "ca type"),
        firmware=keyed.word(block.said, "firmware version"),
        node_guid=keyed.word(block.said, "node guid"),
        port_count=count,
        ports={number: _port(said) for number, said in sorted(block.ports.items())},
        missing_ports=Value(max(count.value - len(block.ports), 0)) if isinstance(count, Value) else count,
    )


def _port(said: Mapping[str, str]) -> Port:
    state = _state(said, "state")
    active = _active(state)
    rate = keyed.rate(said, "rate")
    if active == Value(False):
        rate = Unknown("PortNotActive", raw.clean(said.get("rate", "")))
    elif not isinstance(active, Value):
        rate = Unknown("StateUnknown", raw.clean(said.get("rate", "")))
    speed = _SPEED.search(said.get("rate", ""))
    return Port(
        state=state,
        active=active,
        physical_state=_state(said, "physical state" if "physical state" in said else "phys state"),
        rate_gbps=rate,
        speed=Value(speed[1]) if speed else Unknown("NotSaid"),
        base_lid=keyed.lid(said, "base lid"),
        sm_lid=keyed.lid(said, "sm lid"),
        guid=keyed.word(said, "port guid"),
        link_layer=keyed.word(said, "link layer" if "link layer" in said else "link_layer"),
    )


def _active(state: Fact[str]) -> Fact[bool]:
    """Unknown for a word that is cut or garbled: it is not down for that."""
    if not isinstance(state, Value):
        return state
    said = state.value.lower()
    return Value(said == "active") if said == "active" or said in _NOT_ACTIVE else Unknown("UnreadableState", raw.clean(said, 80))


def _state(said: Mapping[str, str], key: str) -> Fact[str]:
    found = keyed.word(said, key)
    match = _STATE.match(found.value) if isinstance(found, Value) else None
    return Value(match[1]) if match else found


def _several(adapter: Adapter) -> bool:
    return len(adapter.ports) > 1 or (isinstance(adapter.port_count, Value) and adapter.port_count.value > 1)


def _adapters(adapters: Mapping[str, Adapter], errors: list[str]) -> Adapters:
    ports = [
        (name, f"{name}/{number}" if _several(adapter) else name, number, port)
        for name, adapter in adapters.items()
        for number, port in adapter.ports.items()
    ]
    return Adapters(
        adapters=adapters,
        types=tuple(sorted({adapter.type.value for adapter in adapters.values() if isinstance(adapter.type, Value)})),
        states={f"{name}/{number}": port.state for name, _, number, port in ports},
        distinct_states=tuple(sorted({port.state.value for *_, port in ports if isinstance(port.state, Value)})),
        down=tuple(label for _, label, _, port in ports if port.active == Value(False)),
        not_linked={
            label: port.physical_state.value
            for _, label, _, port in ports
            if isinstance(port.physical_state, Value) and port.physical_state.value.lower() != "linkup"
        },
        rates_gbps=tuple(sorted({port.rate_gbps.value for *_, port in ports if isinstance(port.rate_gbps, Value)})),
        link_layers=tuple(sorted({port.link_layer.value for *_, port in ports if isinstance(port.link_layer, Value)})),
        failed=tuple(dict.fromkeys(found[1] for error in errors if (found := _FAILED.search(error)))),
        errors=tuple(errors),
    )
