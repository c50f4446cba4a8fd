"""RDMA adapters and their ports: /sys/class/infiniband."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, links, raw, scalars
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

_AT = "/sys/class/infiniband"
GAP = 16  # empty rows one after another that end a GID table: the kernel fills the first that is free
# Documentation/ABI/stable/sysfs-class-infiniband
COUNTERS = (
    "port_rcv_data",
    "port_xmit_data",
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_rcv_constraint_errors",
    "port_xmit_constraint_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)
# of the adapter's driver: a vendor's names, there or not
HW_COUNTERS = (
    "out_of_sequence",
    "out_of_buffer",
    "packet_seq_err",
    "local_ack_timeout_err",
    "implied_nak_seq_err",
    "duplicate_request",
    "rnr_nak_retry_err",
    "req_cqe_error",
    "req_remote_access_errors",
    "roce_adp_retrans",
    "roce_slow_restart",
    "rx_icrc_encapsulated",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "rp_cnp_handled",
    "rp_cnp_ignored",
)
_ADAPTER = ("fw_ver", "board_id", "hca_type", "node_type", "node_guid", "sys_image_guid", "node_desc", "device/numa_node")
_PORT = (
    "state",
    "phys_state",
    "rate",
    "link_layer",
    "lid",
    "sm_lid",
    "pkeys/0",
    "pkeys/1",
    "pkeys/2",
    "pkeys/3",
    *(f"counters/{name}" for name in COUNTERS),
    *(f"hw_counters/{name}" for name in HW_COUNTERS),
)
_MODULES = ("ib_core", "ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm", "mlx5_core", "mlx5_ib", "nvidia_peermem", "nv_peer_mem")
_NUMBERED = re.compile(r"([0-9]{1,3}): ([A-Za-z_ -]{1,40})")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,2})?) Gb/sec\b.*")
_GID = re.compile(r"gids/([0-9]{1,6})")
_HEX = re.compile(r"0x[0-9a-f]{1,8}")


@dataclass(frozen=True, slots=True)
class Gid:
    """One filled entry of a GID table. `type`: IB/RoCE v1 or RoCE v2; `device`: the network interface behind it."""

    index: int
    gid: str
    type: Fact[str]
    device: Fact[str]


@dataclass(frozen=True, slots=True)
class Port:
    """One port. `rate_gbps` in Gbit/s. `lid` and `sm_lid` 0 where no subnet manager gave them, as RoCE has none.

    `gids`: filled rows up to the first GAP empty ones in a row. `devices`: network interfaces of its GIDs.
    """

    state: Fact[str]
    physical_state: Fact[str]
    rate_gbps: Fact[float]
    link_layer: Fact[str]
    lid: Fact[int]
    sm_lid: Fact[int]
    pkeys: tuple[Fact[str], ...]
    gids: tuple[Fact[Gid], ...]
    devices: tuple[str, ...]
    counters: dict[str, Fact[int]]
    hw_counters: dict[str, Fact[int]]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One RDMA device and its ports by number. `uverbs`, `umad`: device files that programs and the fabric's tools open."""

    firmware: Fact[str]
    board_id: Fact[str]
    type: Fact[str]
    node_guid: Fact[str]
    system_guid: Fact[str]
    description: Fact[str]
    pci: Fact[str]
    driver: Fact[str]
    numa_node: Fact[int]
    uverbs: tuple[str, ...]
    umad: tuple[str, ...]
    ports: dict[str, Port]


@dataclass(frozen=True, slots=True)
class Rdma:
    """`modules`: which of those that RDMA and GPUDirect need are loaded (or built in, with parameters of their own)."""

    adapters: Fact[dict[str, Adapter]]
    modules: dict[str, Fact[bool]]


def numbered(said: str) -> Fact[str]:
    """`4: ACTIVE`, `5: LinkUp`: the word."""
    found = _NUMBERED.fullmatch(said)
    return Value(found[2]) if found else scalars.strange(said, "UnreadableState")


def rate(said: str) -> Fact[float]:
    """`400 Gb/sec (4X NDR)`."""
    found = _RATE.fullmatch(said)
    return scalars.real(found[1]) if found else scalars.strange(said, "UnexpectedUnit")


def hexadecimal(said: str) -> Fact[int]:
    return Value(int(said, 16)) if _HEX.fullmatch(said) else scalars.strange(said)


def _gids(files: Mapping[str, Any]) -> tuple[Fact[Gid], ...]:
    """The filled rows of the table, in their order."""
    rows = sorted((int(found[1]), said) for path, said in files.items() if (found := _GID.fullmatch(path)))
    return tuple(_gid(index, said, files) for index, said in rows)


def _gid(index: int, said: Any, files: Mapping[str, Any]) -> Fact[Gid]:
    gid = answers.text(said)
    if not isinstance(gid, Value):
        return gid
    kind = answers.text(files.get(f"gid_attrs/types/{index}"), "NotSaid")
    return Value(Gid(index, gid.value, kind, answers.text(files.get(f"gid_attrs/ndevs/{index}"), "NoInterface")))


def _port(files: Mapping[str, Any]) -> Port:
    def file(name: str) -> Fact[str]:
        return answers.text(files.get(name))

    gids = _gids(files)
    devices = [gid.value.device for gid in gids if isinstance(gid, Value)]
    return Port(
        state=answers.then(file("state"), numbered),
        physical_state=answers.then(file("phys_state"), numbered),
        rate_gbps=answers.then(file("rate"), rate),
        link_layer=file("link_layer"),
        lid=answers.then(file("lid"), hexadecimal),
        sm_lid=answers.then(file("sm_lid"), hexadecimal),
        pkeys=tuple(file(f"pkeys/{i}") for i in range(4) if f"pkeys/{i}" in files),
        gids=gids,
        devices=tuple(dict.fromkeys(device.value for device in devices if isinstance(device, Value))),
        counters={name: answers.whole(files.get(f"counters/{name}"), "NotExported") for name in COUNTERS},
        hw_counters={name: answers.whole(files.get(f"hw_counters/{name}"), "NotExported") for name in HW_COUNTERS},
    )


def _adapter(files: Mapping[str, Any], ports: dict[str, Port], nodes: Mapping[str, tuple[str, ...]]) -> Adapter:
    def file(name: str, missing: str = "NoSuchFile") -> Fact[str]:
        return answers.text(files.get(name), missing)

    return Adapter(
        firmware=file("fw_ver"),
        board_id=file("board_id"),
        type=file("hca_type"),
        node_guid=file("node_guid"),
        system_guid=file("sys_image_guid"),
        description=file("node_desc"),
        pci=answers.base(file("device", "Virtual")),
        driver=answers.base(file("device/driver", "Virtual")),
        numa_node=links.numa_node(files.get("device/numa_node")),
        uverbs=nodes["uverbs"],
        umad=nodes["umad"],
        ports=ports,
    )


def _adapters(groups: Fact[Any]) -> Fact[dict[str, Adapter]]:
    found, ports = answers.members(groups, "adapters"), answers.members(groups, "ports")
    if not isinstance(found, Value) or not isinstance(ports, Value):
        return found if not isinstance(found, Value) else Unknown("WrongShape", "ports")
    adapters = {}
    for folder, files in found.value.items():
        own = {
            at.rpartition("/")[2]: _port(answers.mapping(said)) for at, said in ports.value.items() if at.startswith(folder + "/")
        }
        name = folder.rpartition("/")[2]
        nodes = {group: _nodes(groups, group, name) for group in ("uverbs", "umad")}
        adapters[name] = _adapter(answers.mapping(files), own, nodes)
    return Value(adapters) if adapters else Absent("NoAdapters")


def _nodes(groups: Fact[Any], group: str, adapter: str) -> tuple[str, ...]:
    """Device files whose `ibdev` says that they are the adapter's."""
    found = answers.members(groups, group)
    rows = found.value.items() if isinstance(found, Value) else ()
    return tuple(at.rpartition("/")[2] for at, files in rows if answers.text(answers.mapping(files).get("ibdev")) == Value(adapter))


def parse(raws: tuple[Raw, ...]) -> Fact[Rdma]:
    """Adapters are Absent(NoAdapters) where there is none; the modules are said all the same."""
    groups = raw.fragment(raws[0])
    if not isinstance(groups, Value):
        return groups
    return Value(Rdma(_adapters(groups), {name: _loaded(groups, name) for name in _MODULES}))


def _loaded(groups: Fact[Any], name: str) -> Fact[bool]:
    found = answers.members(groups, f"module {name}")
    return Value(bool(found.value)) if isinstance(found, Value) else found


def stable(value: Any) -> Any:
    """Without counters."""
    if not isinstance(value["adapters"], dict) or set(value["adapters"]) & {"absent", "unknown"}:
        return value
    adapters = {}
    for name, adapter in value["adapters"].items():
        ports = {n: {k: v for k, v in port.items() if "counters" not in k} for n, port in adapter["ports"].items()}
        adapters[name] = {**adapter, "ports": ports}
    return {**value, "adapters": adapters}


_TABLE = {
    "files": ["gids/%d", "gid_attrs/types/%d", "gid_attrs/ndevs/%d"],
    "empty": "0000:0000:0000:0000:0000:0000:0000:0000",
    "gap": GAP,
}
_GROUPS = {
    "adapters": {"at": f"{_AT}/*", "files": list(_ADAPTER), "links": ["device", "device/driver"]},
    "ports": {"at": f"{_AT}/*/ports/*", "files": list(_PORT), "tables": [_TABLE]},
    **{f"module {name}": {"at": f"/sys/module/{name}"} for name in _MODULES},
    "uverbs": {"at": "/sys/class/infiniband_verbs/uverbs*", "files": ["ibdev"]},
    "umad": {"at": "/sys/class/infiniband_mad/umad*", "files": ["ibdev"]},
}
FACT = LiveFact("rdma", lambda about: (Ask("devices", json.dumps({"groups": _GROUPS, "limit": 4096}), quick=True),), parse, stable)
