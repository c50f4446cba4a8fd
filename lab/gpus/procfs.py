"""/proc/driver/nvidia of a node whose driver is loaded. Pure."""

from lab.gpus.products import PRODUCTS
from lab.gpus.state import Gpu, NodeState

_BUILDER, _COMPILER = "dvs-builder@lab", "gcc version 11.5.0 20240719 (Red Hat 11.5.0-5) (GCC) "


def version(loaded: str, builder: str = _BUILDER, compiler: str = _COMPILER) -> str:
    """/proc/driver/nvidia/version of the open kernel module."""
    return (f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {loaded}  Release Build  ({builder})  \n"
            f"GCC version:  {compiler}\n")  # fmt: skip


def files(state: NodeState, loaded: str) -> dict[str, str]:
    """Path below /proc/driver/nvidia -> text."""
    found = {"version": version(loaded), "params": "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n"}
    for index, gpu in enumerate(state.gpus):
        found[f"gpus/{gpu.bus}/information"] = _information(index, gpu)
    return found


def _information(index: int, gpu: Gpu) -> str:
    """A GPU that fell off the bus has no readable identity any more: question marks, as the driver prints them."""
    uuid, vbios = gpu.uuid, PRODUCTS[gpu.product].vbios.lower()
    if gpu.lost:
        uuid, vbios = "GPU-????????-????-????-????-????????????", "??.??.??.??.??"
    return (
        f"Model: \t\t {PRODUCTS[gpu.product].name}\nIRQ:   \t\t {200 + index}\nGPU UUID: \t {uuid}\nVideo BIOS: \t {vbios}\n"
        f"Bus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t {gpu.bus}\n"
        f"Device Minor: \t {index}\nGPU Firmware: \t N/A\nGPU Excluded:\t No\n"
    )
