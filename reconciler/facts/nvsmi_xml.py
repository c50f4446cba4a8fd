"""`nvidia-smi -q -x`: device tables v6 (driver 340) to v13 (driver 550 and later).

The text is read GPU by GPU, each piece by its own parser: what stands before a cut or a damage is kept, and so are the other GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from xml.etree import ElementTree as ET

from reconciler.facts import nvsmi, text
from reconciler.facts.nvsmi import Fault
from reconciler.facts.nvsmi_block import Block, gpu, mig_device, process
from reconciler.facts.nvsmi_gpu import Gpu, Log
from reconciler.model.fact import Absent, Fact, Unknown, Value

Item = TypeVar("Item")

_ROOT = "nvidia_smi_log"
_DTD = re.compile(r"<!DOCTYPE\s{1,9}nvidia_smi_log\s{1,9}SYSTEM\s{1,9}\"([\w.-]{1,80}?)(?:\.dtd)?\"")
_GPU = "<gpu id="
_MOST = 1024  # GPUs of one host: more are no real output, and would only cost time
_LONG = frozenset({"supported_clocks", "accounted_processes", "processes", "mig_devices"})  # lists: not among a GPU's texts

_PATHS: dict[str, tuple[str, ...]] = {
    "driver": ("kmd_version", "driver_version"),
    "cuda": ("cuda_umd_version", "cuda_version"),
    "attached": ("attached_gpus",),
    "name": ("product_name",),
    "architecture": ("product_architecture",),
    "uuid": ("uuid",),
    "serial": ("serial",),
    "part_number": ("gpu_part_number",),
    "vbios": ("vbios_version",),
    "gsp_firmware": ("gsp_firmware_version",),
    "minor": ("minor_number",),
    "persistence": ("persistence_mode",),
    "mig": ("mig_mode/current_mig",),
    "mig_pending": ("mig_mode/pending_mig",),
    "ecc": ("ecc_mode/current_ecc",),
    "ecc_pending": ("ecc_mode/pending_ecc",),
    "compute_mode": ("compute_mode",),
    "addressing_mode": ("addressing_mode",),
    "recovery_action": ("gpu_recovery_action",),
    "reset_required": ("gpu_reset_status/reset_required",),
    "performance_state": ("performance_state",),
    "fan": ("fan_speed",),
    "temperature": ("temperature/gpu_temp",),
    "memory_temperature": ("temperature/memory_temp",),
    "utilization": ("utilization/gpu_util",),
    "fabric_state": ("fabric/state",),
    "fabric_status": ("fabric/status",),
    "pcie_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie_generation_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie_width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "pcie_replays": ("pci/replay_counter",),
    "memory_total": ("fb_memory_usage/total",),
    "memory_reserved": ("fb_memory_usage/reserved",),
    "memory_used": ("fb_memory_usage/used",),
    "memory_free": ("fb_memory_usage/free",),
    "power_draw": ("gpu_power_readings/power_draw", "power_readings/power_draw"),
    "power_average": ("gpu_power_readings/average_power_draw",),
    "power_instant": ("gpu_power_readings/instant_power_draw",),
    "power_limit": ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"),
    "power_limit_asked": ("power_readings/power_limit",),
    "power_limit_default": ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
    "power_limit_min": ("gpu_power_readings/min_power_limit", "power_readings/min_power_limit"),
    "power_limit_max": ("gpu_power_readings/max_power_limit", "power_readings/max_power_limit"),
    "clock_sm": ("clocks/sm_clock",),
    "clock_memory": ("clocks/mem_clock",),
    "clock_sm_max": ("max_clocks/sm_clock",),
    "clock_memory_max": ("max_clocks/mem_clock",),
    "sram_threshold_exceeded": ("ecc_errors/aggregate/sram_threshold_exceeded",),
    "remapped_correctable": ("remapped_rows/remapped_row_corr",),
    "remapped_uncorrectable": ("remapped_rows/remapped_row_unc",),
    "remapped_correctable_inactive": ("remapped_rows/remapped_row_corr_inactive",),
    "remapped_uncorrectable_inactive": ("remapped_rows/remapped_row_unc_inactive",),
    "remapped_pending": ("remapped_rows/remapped_row_pending",),
    "remapped_failure": ("remapped_rows/remapped_row_failure",),
    "retired_single_bit": ("retired_pages/multiple_single_bit_retirement/retired_count",),
    "retired_double_bit": ("retired_pages/double_bit_retirement/retired_count",),
    "retired_pending": ("retired_pages/pending_retirement",),
    "mig_index": ("index",),
    "mig_gpu_instance": ("gpu_instance_id",),
    "mig_compute_instance": ("compute_instance_id",),
    "mig_memory_total": ("fb_memory_usage/total",),
    "process_pid": ("pid",),
    "process_type": ("type",),
    "process_name": ("process_name",),
    "process_memory": ("used_memory",),
    **{
        f"{kind}_{since}{detail}": (f"ecc_errors/{since}/{kind}{detail}",)
        for kind in ("sram_uncorrectable", "dram_correctable", "dram_uncorrectable")
        for since in ("volatile", "aggregate")
        for detail in ("", "_parity", "_secded")
    },
    **{  # `event` since driver 535
        f"throttle_{name}": tuple(f"clocks_{word}_reasons/clocks_{word}_reason_{long}" for word in ("event", "throttle"))
        for name, long in (
            ("hw_slowdown", "hw_slowdown"),
            ("hw_thermal", "hw_thermal_slowdown"),
            ("hw_power_brake", "hw_power_brake_slowdown"),
            ("sw_thermal", "sw_thermal_slowdown"),
            ("sw_power_cap", "sw_power_cap"),
        )
    },
    **{
        f"histogram_{level}": (f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{level}",)
        for level in ("max", "high", "partial", "low", "none")
    },
}


@dataclass(frozen=True, slots=True)
class XmlLog(Log):
    """`dtd`: name of the device table without `.dtd`. `well_formed`: nothing is cut or damaged."""

    dtd: Fact[str]
    well_formed: bool


def _read(piece: str) -> tuple[ET.Element | None, bool]:
    """The elements of a piece as far as it can be read, and whether there was no damage; its end may be missing."""
    builder = ET.TreeBuilder()
    parser = ET.XMLParser(target=builder)  # noqa: S314 (a text that declares entities is refused before)
    try:
        parser.feed(piece.encode("utf-8", "replace"))
        sound = True
    except (ET.ParseError, ValueError):
        sound = False
    root = builder.close()
    return (root if isinstance(root, ET.Element) else None), sound


def _texts(root: ET.Element) -> dict[str, str]:
    """Texts of all elements below `root` by path; an element with parts counts only where it has a text of its own."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, ET.Element]] = [("", root)]
    while waiting:
        above, element = waiting.pop()
        if len(above) > 200:  # the deepest path of a real table has 90 characters
            continue
        for child in element:
            path = f"{above}{child.tag}"
            if child.text is not None and (not len(child) or child.text.strip()):
                found.setdefault(path, child.text)
            if len(child) and child.tag not in _LONG:
                waiting.append((path + "/", child))
    return found


def _list(root: ET.Element, piece: str, section: str, name: str, make: Callable[[Block], Item]) -> Fact[tuple[Item, ...]]:
    """The parts of a section; Unknown(Truncated) where its end is not there: some of them may be missing."""
    found = root.find(section)
    if found is None:
        return Unknown("Missing")
    if f"</{section}>" not in piece and f"<{section}/>" not in piece:
        return Unknown("Truncated")
    said = nvsmi.shown(found.text or "")
    if not len(found) and isinstance(said, Absent):
        return said
    return Value(tuple(make(Block(_texts(element), _PATHS)) for element in found.iterfind(name)))


def _gpu(root: ET.Element, piece: str) -> Gpu:
    bus = root.get("id")
    devices = _list(root, piece, "mig_devices", "mig_device", mig_device)
    processes = _list(root, piece, "processes", "process_info", process)
    return gpu(Block(_texts(root), _PATHS), nvsmi.shown(bus) if bus is not None else Unknown("Missing"), devices, processes)


def _head(piece: str) -> tuple[Block, bool]:
    """The elements before the first GPU."""
    start = piece.find(f"<{_ROOT}")
    root, sound = _read(piece[start:]) if start >= 0 else (None, False)
    return Block(_texts(root) if root is not None else {}, _PATHS), sound


def parse(saved: str) -> Fact[XmlLog]:
    """All GPUs of the document; Absent(NoDevices) or Unknown where it has none and a message says why."""
    clean = text.clean(saved)
    if "<!ENTITY" in clean:
        return Unknown("EntitiesRefused")
    pieces = clean.split(_GPU, _MOST + 1)
    if len(pieces) > _MOST + 1:
        return Unknown("TooManyGpus")
    _, closed, after = pieces[-1].rpartition(f"</{_ROOT}>")
    faults = nvsmi.faults([*pieces[0][:4000].splitlines(), *after[:4000].splitlines()])
    if f"<{_ROOT}" not in clean and len(pieces) == 1:
        return nvsmi.nothing(clean, faults)
    head, well_formed = _head(pieces[0])
    gpus: list[Gpu] = []
    for piece in pieces[1:]:
        body, end, _ = piece.partition("</gpu>")
        root, sound = _read(_GPU + body + end)
        well_formed &= sound and bool(end)
        gpus.extend([_gpu(root, body)] if root is not None else [])
    dtd = _DTD.search(pieces[0][:4000])
    return Value(_log(head, tuple(gpus), faults, Value(dtd[1]) if dtd else Absent("NoDoctype"), well_formed and bool(closed)))


def _log(head: Block, gpus: tuple[Gpu, ...], faults: tuple[Fault, ...], dtd: Fact[str], well_formed: bool) -> XmlLog:
    attached = head.number("attached")
    complete = well_formed and attached == Value(len(gpus))
    return XmlLog(head.text("driver"), head.text("cuda"), attached, gpus, faults, complete, dtd, well_formed)
