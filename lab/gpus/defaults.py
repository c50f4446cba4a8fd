"""The GPUs and cards that a lab node has at first: 8 A100 80GB PCIe in bridged pairs, two HDR adapters. Pure."""

import hashlib

from lab.gpus.products import A100
from lab.gpus.state import Gpu, Nic, NodeState, NvLink

# two sockets, four GPUs each, and a card beside the first GPU of each
_SLOTS = ("17:00", "31:00", "4b:00", "65:00", "98:00", "b1:00", "ca:00", "e3:00")
_CARDS = (("18:00", 0), ("99:00", 4))
_LINKS_OF_A_PAIR = 12  # three bridges of four


def default_state(node: str) -> NodeState:
    """What the node of this name has; ids follow from the name, so no two nodes share one and a rebuilt node keeps its own."""
    gpus = tuple(_gpu(node, index) for index in range(len(_SLOTS)))
    nics = tuple(_nic(node, index) for index in range(len(_CARDS)))
    links = {f"GPU{pair}-GPU{pair + 1}": f"NV{_LINKS_OF_A_PAIR}" for pair in range(0, len(gpus), 2)}
    links |= {f"GPU{gpu}-NIC{card}": "PXB" for card, (_, gpu) in enumerate(_CARDS)}
    return NodeState(gpus, nics, links)


def _digest(*parts: object) -> str:
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()


def _gpu(node: str, index: int) -> Gpu:
    found = _digest(node, "gpu", index)
    uuid = f"GPU-{found[:8]}-{found[8:12]}-{found[12:16]}-{found[16:20]}-{found[20:32]}"
    half = len(_SLOTS) // 2
    return Gpu(
        product=A100.name, bus=f"0000:{_SLOTS[index]}.0", uuid=uuid, serial=f"132{int(found[32:40], 16):010}",
        numa=index // half, cpus="0-31" if index < half else "32-63", temperature=31 + int(found[40], 16) // 2,
        memory_temperature=33 + int(found[41], 16) // 2, power_draw=42.0 + int(found[42:44], 16) / 50,
        nvlinks=(NvLink(index ^ 1),) * _LINKS_OF_A_PAIR,
    )  # fmt: skip


def _nic(node: str, index: int) -> Nic:
    found = _digest(node, "nic", index)
    guid = f"{found[:4]}:{found[4:8]}:{found[8:12]}:{found[12:16]}"
    bus, gpu = _CARDS[index]
    return Nic(
        name=f"mlx5_{index}", bus=f"0000:{bus}.0", node_guid=guid, port_guid=guid, numa=gpu // 4, lid=int(found[16:19], 16) + 2,
        counters={"symbol_error": 0, "link_error_recovery": 0, "link_downed": 0, "port_rcv_errors": 0,
                  "port_xmit_discards": 0, "port_xmit_wait": 0, "port_rcv_data": 0, "port_xmit_data": 0,
                  "local_link_integrity_errors": 0, "excessive_buffer_overrun_errors": 0},
    )  # fmt: skip
