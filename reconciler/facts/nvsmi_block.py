"""How a GPU is made from the texts of `nvidia-smi -q`, wherever they stand there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.facts.nvsmi import Number, Process, flag, measured, number, shown
from reconciler.facts.nvsmi_gpu import Clocks, Errors, Gpu, Histogram, Memory, MigDevice, Pcie, Power, Remapped, Retired, Throttle
from reconciler.model.fact import Absent, Fact, Unknown, Value

_MISSING = Unknown("Missing")

THROTTLES = ("hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal", "sw_power_cap")


@dataclass(frozen=True, slots=True)
class Block:
    """The texts of a GPU or of a part of it by path (`A/B/C`), and under which paths a field may stand: the first wins."""

    texts: Mapping[str, str]
    paths: Mapping[str, tuple[str, ...]]

    def text(self, name: str) -> Fact[str]:
        """A field; what its section says where that is one word for all (`Remapped Rows : N/A`); Unknown(Missing) otherwise."""
        for path in self.paths.get(name, ()):
            if path in self.texts:
                return shown(self.texts[path])
        for path in self.paths.get(name, ()):
            section = path.rpartition("/")[0]
            while section:
                if section in self.texts:
                    cell = shown(self.texts[section])
                    return Unknown("Missing") if isinstance(cell, Value) else cell
                section = section.rpartition("/")[0]
        return Unknown("Missing")

    def number(self, name: str, unit: str = "") -> Fact[Number]:
        for path in self.paths.get(name, ()):
            if path in self.texts:
                return measured(self.texts[path], unit)
        return number(self.text(name), unit)

    def flag(self, name: str) -> Fact[bool]:
        return flag(self.text(name))


def _nothing(*facts: Fact[object]) -> Absent | Unknown | None:
    """One answer where none of several is known: the first that says that there is no such thing, else the first."""
    open_ = [fact for fact in facts if not isinstance(fact, Value)]
    return next((fact for fact in open_ if isinstance(fact, Absent)), open_[0]) if len(open_) == len(facts) else None


def _remapped(block: Block) -> Fact[Remapped]:
    """Absent where the GPU has no such thing, Unknown(Missing) where the text says nothing about it."""
    names = ("correctable", "uncorrectable", "correctable_inactive", "uncorrectable_inactive")
    counts = [block.number(f"remapped_{name}") for name in names]
    pending, failure = block.flag("remapped_pending"), block.flag("remapped_failure")
    levels = ("max", "high", "partial", "low", "none")
    histogram = Histogram(*(block.number(f"histogram_{level}", "banks") for level in levels))
    found = Remapped(counts[0], counts[1], counts[2], counts[3], pending, failure, histogram)
    return _nothing(counts[1], *counts, pending, failure) or Value(found)


def _retired(block: Block) -> Fact[Retired]:
    """The same for retired pages."""
    single, double = block.number("retired_single_bit"), block.number("retired_double_bit")
    pending = block.flag("retired_pending")
    return _nothing(single, double, pending) or Value(Retired(single, double, pending))


def _pcie(block: Block) -> Pcie:
    return Pcie(
        block.number("pcie_generation"),
        block.number("pcie_generation_max"),
        block.number("pcie_width", "x"),
        block.number("pcie_width_max", "x"),
        block.number("pcie_replays"),
    )


def _power(block: Block) -> Power:
    names = ("draw", "average", "instant", "limit", "limit_default", "limit_min", "limit_max")
    found = Power(*(block.number(f"power_{name}", "W") for name in names))
    if found.limit_watts != _MISSING or found.limit_max_watts == _MISSING:
        return found
    # the oldest drivers do not tell the enforced one, which would stand between; a text that is cut has no maximum either
    return replace(found, limit_watts=block.number("power_limit_asked", "W"))


def _errors(block: Block) -> Errors:
    return Errors(
        sram_uncorrectable_volatile=_sum(block, "sram_uncorrectable_volatile"),
        sram_uncorrectable_aggregate=_sum(block, "sram_uncorrectable_aggregate"),
        dram_correctable_volatile=block.number("dram_correctable_volatile"),
        dram_correctable_aggregate=block.number("dram_correctable_aggregate"),
        dram_uncorrectable_volatile=block.number("dram_uncorrectable_volatile"),
        dram_uncorrectable_aggregate=block.number("dram_uncorrectable_aggregate"),
        sram_threshold_exceeded=block.flag("sram_threshold_exceeded"),
    )


def _sum(block: Block, name: str) -> Fact[Number]:
    """Drivers from 550 on count parity and SEC-DED apart."""
    whole = block.number(name)
    if whole != Unknown("Missing"):
        return whole
    parity, secded = block.number(f"{name}_parity"), block.number(f"{name}_secded")
    if isinstance(parity, Value) and isinstance(secded, Value):
        return Value(parity.value + secded.value)
    return secded if isinstance(parity, Value) else parity


def mig_device(block: Block) -> MigDevice:
    return MigDevice(
        block.number("mig_index"),
        block.number("mig_gpu_instance"),
        block.number("mig_compute_instance"),
        block.number("mig_memory_total", "MiB"),
    )


def process(block: Block) -> Process:
    name, kind = block.text("process_name"), block.text("process_type")
    return Process(block.number("process_pid"), kind, name, block.number("process_memory", "MiB"))


def gpu(block: Block, bus_id: Fact[str], devices: Fact[tuple[MigDevice, ...]], processes: Fact[tuple[Process, ...]]) -> Gpu:
    """A GPU from its texts."""
    return Gpu(
        bus_id=bus_id,
        name=block.text("name"),
        architecture=block.text("architecture"),
        uuid=block.text("uuid"),
        serial=block.text("serial"),
        part_number=block.text("part_number"),
        vbios=block.text("vbios"),
        gsp_firmware=block.text("gsp_firmware"),
        minor=block.number("minor"),
        persistence=block.flag("persistence"),
        mig=block.flag("mig"),
        mig_pending=block.flag("mig_pending"),
        ecc=block.flag("ecc"),
        ecc_pending=block.flag("ecc_pending"),
        compute_mode=block.text("compute_mode"),
        addressing_mode=block.text("addressing_mode"),
        recovery_action=block.text("recovery_action"),
        reset_required=block.flag("reset_required"),
        performance_state=block.text("performance_state"),
        fan_percent=block.number("fan", "%"),
        temperature_celsius=block.number("temperature", "C"),
        memory_temperature_celsius=block.number("memory_temperature", "C"),
        utilization_percent=block.number("utilization", "%"),
        fabric_state=block.text("fabric_state"),
        fabric_status=block.text("fabric_status"),
        pcie=_pcie(block),
        memory=Memory(*(block.number(f"memory_{name}", "MiB") for name in ("total", "reserved", "used", "free"))),
        power=_power(block),
        clocks=Clocks(*(block.number(f"clock_{name}", "MHz") for name in ("sm", "memory", "sm_max", "memory_max"))),
        throttle=Throttle(*(block.flag(f"throttle_{name}") for name in THROTTLES)),
        errors=_errors(block),
        remapped=_remapped(block),
        retired=_retired(block),
        mig_devices=devices,
        processes=processes,
    )
