"""PCI devices of a node as files below /sys/bus/pci/devices: GPUs and network cards. Pure.

Layout of the configuration space: PCI Local Bus 3.0 section 6.1, PCI Express Base 4.0 section 7.5.3; lspci(8) decodes it.
"""

import struct

from lab.gpus.products import PRODUCTS
from lab.gpus.state import Gpu, Nic, NodeState

_SPEEDS = {1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
_MELLANOX, _CONNECTX6 = 0x15B3, 0x101B
_EXPRESS = 0x78  # where the PCI Express capability lies
_DEAD = b"\xff" * 256


def files(state: NodeState) -> dict[str, bytes]:
    """Path below /sys/bus/pci/devices -> content."""
    found: dict[str, bytes] = {}
    for index, gpu in enumerate(state.gpus):
        found |= {f"{gpu.bus}/{name}": data for name, data in _gpu(gpu, 200 + index).items()}
    for index, nic in enumerate(state.nics):
        found |= {f"{nic.bus}/{name}": data for name, data in _nic(nic, 300 + index).items()}
    return found


def links(state: NodeState, driver: bool) -> dict[str, str]:
    """Path below /sys/bus/pci/devices -> target of the link; `driver`: whether nvidia's is bound."""
    bound = {gpu.bus: "nvidia" for gpu in state.gpus} if driver else {}
    bound |= {nic.bus: "mlx5_core" for nic in state.nics}
    return {f"{bus}/driver": f"../../drivers/{name}" for bus, name in bound.items()}


def _gpu(gpu: Gpu, irq: int) -> dict[str, bytes]:
    product = PRODUCTS[gpu.product]
    device, vendor = int(product.device_id[:4], 16), int(product.device_id[4:], 16)
    subsystem, subvendor = int(product.subsystem_id[:4], 16), int(product.subsystem_id[4:], 16)
    link = (product.pcie_gen, 16, gpu.pcie.gen, gpu.pcie.width)
    found = _device((vendor, device), (subvendor, subsystem), 0x030200, 0xA1, link, gpu.numa, gpu.cpus, irq)
    found["aer_dev_correctable"] = _counters({"RxErr": gpu.pcie.aer_corrected, "BadTLP": 0, "BadDLLP": 0}, "COR")
    found["aer_dev_fatal"] = _counters({"Undefined": 0, "DLP": 0, "MalfTLP": gpu.pcie.aer_fatal}, "FATAL")
    if gpu.lost:  # every read of a dead device gives ones; what the kernel read at boot it still knows
        del found["revision"]  # or lspci would show that, where EL9's older one reads the device and shows ff
        found |= {"config": _DEAD, "current_link_speed": b"Unknown\n", "current_link_width": b"63\n"}
    return found


def _nic(nic: Nic, irq: int) -> dict[str, bytes]:
    kind = 0x020700 if nic.link_layer == "InfiniBand" else 0x020000
    cpus = "0-31" if nic.numa == 0 else "32-63"
    return _device((_MELLANOX, _CONNECTX6), (_MELLANOX, 0x0006), kind, 0, (4, 16, 4, 16), nic.numa, cpus, irq)


def _device(
    ids: tuple[int, int], subsystem: tuple[int, int], kind: int, revision: int, link: tuple[int, int, int, int],
    numa: int, cpus: str, irq: int,
) -> dict[str, bytes]:  # fmt: skip
    top_gen, top_width, gen, width = link
    texts = {
        "vendor": f"0x{ids[0]:04x}", "device": f"0x{ids[1]:04x}", "subsystem_vendor": f"0x{subsystem[0]:04x}",
        "subsystem_device": f"0x{subsystem[1]:04x}", "class": f"0x{kind:06x}", "revision": f"0x{revision:02x}", "irq": str(irq),
        "numa_node": str(numa), "local_cpulist": cpus, "enable": "1", "power_state": "D0", "max_link_speed": _SPEEDS[top_gen],
        "max_link_width": str(top_width), "current_link_speed": _SPEEDS[gen], "current_link_width": str(width),
        "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13),
    }  # fmt: skip
    found = {name: f"{text}\n".encode() for name, text in texts.items()}
    found["config"] = _config(ids, subsystem, kind, revision, link)
    return found


def _config(ids: tuple[int, int], subsystem: tuple[int, int], kind: int, revision: int, link: tuple[int, int, int, int]) -> bytes:
    """256 bytes: type 0 header and one capability, PCI Express, with what the link can and what it does."""
    space = bytearray(256)
    struct.pack_into("<HHHHI", space, 0, *ids, 0x0006, 0x0010, kind << 8 | revision)
    struct.pack_into("<HH", space, 0x2C, *subsystem)
    space[0x34], space[0x3D] = _EXPRESS, 1
    top_gen, top_width, gen, width = link
    express = (0x10, 0, 0x0002, 0x8FE1, 0x5930, top_gen | top_width << 4, 0, gen | width << 4)
    struct.pack_into("<BBHIIIHH", space, _EXPRESS, *express)
    return bytes(space)


def _counters(errors: dict[str, int], name: str) -> bytes:
    return "".join(f"{key} {value}\n" for key, value in {**errors, f"TOTAL_ERR_{name}": sum(errors.values())}.items()).encode()
