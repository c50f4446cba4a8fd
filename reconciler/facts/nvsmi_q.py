"""`nvidia-smi -q`: keys and values, nested by their indentation; drivers 535 to 610 write the same keys with other widths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from reconciler.facts import nvsmi, text
from reconciler.facts.nvsmi_block import Block, gpu, mig_device, process
from reconciler.facts.nvsmi_gpu import Gpu, Log, MigDevice
from reconciler.model.fact import Absent, Fact, Unknown, Value

Item = TypeVar("Item")
Texts = dict[str, str]

_POWER = ("GPU Power Readings/", "Power Readings/")
_LINK = "PCI/GPU Link Info/"
_PATHS: dict[str, tuple[str, ...]] = {
    "driver": ("KMD Version", "Driver Version"),
    "cuda": ("CUDA UMD Version", "CUDA Version"),
    "attached": ("Attached GPUs",),
    "vgpu_host": ("vGPU Driver Capability/Heterogenous Multi-vGPU",),
    "name": ("Product Name",),
    "architecture": ("Product Architecture",),
    "uuid": ("GPU UUID",),
    "serial": ("Serial Number",),
    "part_number": ("GPU Part Number",),
    "vbios": ("VBIOS Version",),
    "gsp_firmware": ("GSP Firmware Version",),
    "minor": ("Minor Number",),
    "persistence": ("Persistence Mode",),
    "mig": ("MIG Mode/Current",),
    "mig_pending": ("MIG Mode/Pending",),
    "ecc": ("ECC Mode/Current", "Ecc Mode/Current"),
    "ecc_pending": ("ECC Mode/Pending", "Ecc Mode/Pending"),
    "compute_mode": ("Compute Mode",),
    "addressing_mode": ("Addressing Mode",),
    "recovery_action": ("GPU Recovery Action",),
    "reset_required": ("GPU Reset Status/Reset Required",),
    "performance_state": ("Performance State",),
    "fan": ("Fan Speed",),
    "temperature": ("Temperature/GPU Current Temp",),
    "memory_temperature": ("Temperature/Memory Current Temp",),
    "utilization": ("Utilization/GPU", "Utilization/Gpu"),
    "fabric_state": ("Fabric/State",),
    "fabric_status": ("Fabric/Status",),
    "pcie_generation": (f"{_LINK}PCIe Generation/Current",),
    "pcie_generation_max": (f"{_LINK}PCIe Generation/Max",),
    "pcie_width": (f"{_LINK}Link Width/Current",),
    "pcie_width_max": (f"{_LINK}Link Width/Max",),
    "pcie_replays": ("PCI/Replays Since Reset",),
    "memory_total": ("FB Memory Usage/Total",),
    "memory_reserved": ("FB Memory Usage/Reserved",),
    "memory_used": ("FB Memory Usage/Used",),
    "memory_free": ("FB Memory Usage/Free",),
    "power_draw": tuple(f"{section}Power Draw" for section in _POWER),
    "power_average": ("GPU Power Readings/Average Power Draw",),
    "power_instant": ("GPU Power Readings/Instantaneous Power Draw",),
    "power_limit": ("GPU Power Readings/Current Power Limit", "Power Readings/Enforced Power Limit"),
    "power_limit_asked": ("Power Readings/Power Limit",),
    "power_limit_default": tuple(f"{section}Default Power Limit" for section in _POWER),
    "power_limit_min": tuple(f"{section}Min Power Limit" for section in _POWER),
    "power_limit_max": tuple(f"{section}Max Power Limit" for section in _POWER),
    "clock_sm": ("Clocks/SM",),
    "clock_memory": ("Clocks/Memory",),
    "clock_sm_max": ("Max Clocks/SM",),
    "clock_memory_max": ("Max Clocks/Memory",),
    "sram_threshold_exceeded": ("ECC Errors/Aggregate/SRAM Threshold Exceeded",),
    "remapped_correctable": ("Remapped Rows/Correctable Error",),
    "remapped_uncorrectable": ("Remapped Rows/Uncorrectable Error",),
    "remapped_correctable_inactive": ("Remapped Rows/Correctable Error Inactive", "Remapped Rows/Inactive Correctable Error"),
    "remapped_uncorrectable_inactive": ("Remapped Rows/Uncorrectable Error Inactive", "Remapped Rows/Inactive Uncorrectable Error"),
    "remapped_pending": ("Remapped Rows/Pending",),
    "remapped_failure": ("Remapped Rows/Remapping Failure Occurred",),
    "retired_single_bit": ("Retired Pages/Single Bit ECC",),
    "retired_double_bit": ("Retired Pages/Double Bit ECC",),
    "retired_pending": ("Retired Pages/Pending Page Blacklist",),
    "mig_index": ("Index",),
    "mig_gpu_instance": ("GPU Instance ID",),
    "mig_compute_instance": ("Compute Instance ID",),
    "mig_memory_total": ("Shared FB Memory Usage/Total", "FB Memory Usage/Total"),
    "process_pid": ("Process ID",),
    "process_type": ("Process ID/Type", "Type"),
    "process_name": ("Process ID/Name", "Name"),
    "process_memory": ("Process ID/Used GPU Memory", "Used GPU Memory"),
    **{
        f"{memory.lower()}_{kind.lower()}_{since.lower()}{short}": (f"ECC Errors/{since}/{memory} {kind}{long}",)
        for memory, kind in (("SRAM", "Uncorrectable"), ("DRAM", "Correctable"), ("DRAM", "Uncorrectable"))
        for since in ("Volatile", "Aggregate")
        for short, long in (("", ""), ("_parity", " Parity"), ("_secded", " SEC-DED"))
    },
    **{  # `Event` since driver 535
        f"throttle_{name}": tuple(f"Clocks {word} Reasons/{long}" for word in ("Event", "Throttle"))
        for name, long in (
            ("hw_slowdown", "HW Slowdown"),
            ("hw_thermal", "HW Slowdown/HW Thermal Slowdown"),
            ("hw_power_brake", "HW Slowdown/HW Power Brake Slowdown"),
            ("sw_thermal", "SW Thermal Slowdown"),
            ("sw_power_cap", "SW Power Cap"),
        )
    },
    **{
        f"histogram_{level.lower()}": (f"Remapped Rows/Bank Remap Availability Histogram/{level}",)
        for level in ("Max", "High", "Partial", "Low", "None")
    },
}
_DEVICE, _PROCESS = "MIG Device/", "Processes/"
_LONGEST = 200  # the longest real path has 60 characters
_FIRST_OF_PROCESS = frozenset({"GPU instance ID", "Process ID"})


@dataclass(frozen=True, slots=True)
class QLog(Log):
    """`vgpu_host`: the driver of a host of virtual GPUs, which can place several of them on a GPU."""

    vgpu_host: Fact[bool]


@dataclass(slots=True)
class _Part:
    """A GPU while it is read: its own texts, and those of its MIG devices and processes."""

    bus_id: str = ""
    texts: Texts = field(default_factory=dict)
    devices: list[Texts] = field(default_factory=list)
    processes: list[Texts] = field(default_factory=list)
    sections: set[str] = field(default_factory=set)

    def put(self, path: str, value: str) -> None:
        """A text where it belongs: to a MIG device, a process, or the GPU itself. A process begins with its first key."""
        texts = self.texts
        if path.startswith(_DEVICE) and self.devices:
            texts, path = self.devices[-1], path[len(_DEVICE) :]
        elif path.startswith(_PROCESS):
            path = path[len(_PROCESS) :]
            if not self.processes or (path in _FIRST_OF_PROCESS and path in self.processes[-1]):
                self.processes.append({})
            texts = self.processes[-1]
        texts.setdefault(path, value)

    def whole(self) -> bool:
        """Whether the text goes on to the end of this GPU: the list of processes is last, or next to last."""
        return "Processes" in self.sections and all("Process ID/Used GPU Memory" in texts for texts in self.processes)


def _parts(lines: Iterable[str]) -> list[_Part]:
    """What stands before the first GPU, then one part a GPU."""
    part = _Part()
    parts = [part]
    stack: list[tuple[int, str]] = []  # indentation and path of the sections around a line
    for line in lines:
        key, colon, value = line.partition(" : ")
        if not colon and line.startswith("GPU "):
            part = _Part(bus_id=line[4:].strip())
            parts.append(part)
            stack = []
            continue
        bare = key.lstrip(" ")
        indent = len(key) - len(bare)
        bare = bare.rstrip()
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if stack:
            path = stack[-1][1] + bare
        else:
            path = bare
            part.sections.add(bare)
        if colon:
            part.put(path, value)
        elif path == "MIG Device":
            part.devices.append({})
        if len(path) < _LONGEST:
            stack.append((indent, path + "/"))
    return parts


def _list(part: _Part, section: str, found: list[Texts], make: Callable[[Block], Item]) -> Fact[tuple[Item, ...]]:
    if section in part.texts and not found:
        said = nvsmi.shown(part.texts[section])
        return Value(()) if said == Value("None") else Unknown("UnexpectedWord", said.value) if isinstance(said, Value) else said
    if section not in part.sections:
        return Unknown("Missing")
    return Value(tuple(make(Block(texts, _PATHS)) for texts in found))


def _gpu(part: _Part) -> Gpu:
    devices: Fact[tuple[MigDevice, ...]] = _list(part, "MIG Device", part.devices, mig_device)
    mode = Block(part.texts, _PATHS).flag("mig")
    if not part.devices and (mode == Value(False) or isinstance(mode, Absent)):
        devices = Value(())  # a GPU without MIG has no section for its devices
    processes = _list(part, "Processes", part.processes, process)
    return gpu(Block(part.texts, _PATHS), nvsmi.shown(part.bus_id), devices, processes)


def parse(saved: str) -> Fact[QLog]:
    """All GPUs; Absent(NoDevices) or Unknown where there is none and a message says why."""
    whole, last = text.ended(saved)
    lines = whole.split("\n")
    faults = nvsmi.faults((line for line in lines if line[:1] != " "), last)
    parts = _parts(lines)
    head = Block(parts[0].texts, _PATHS)
    attached = head.number("attached")
    if len(parts) == 1 and not isinstance(attached, Value):
        return nvsmi.nothing(saved, faults)
    gpus = tuple(_gpu(part) for part in parts[1:])
    complete = all(part.whole() for part in parts[1:]) and attached == Value(len(gpus))
    vgpu = head.text("vgpu_host")
    host: Fact[bool] = Value(vgpu.value == "Supported") if isinstance(vgpu, Value) else vgpu
    return Value(QLog(head.text("driver"), head.text("cuda"), attached, gpus, faults, complete, vgpu_host=host))
