"""A GPU as `nvidia-smi -q` tells it, in XML or in words."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.facts.nvsmi import Fault, Number, Process
from reconciler.model.fact import Fact


@dataclass(frozen=True, slots=True)
class Pcie:
    """The link now and at best (an idle GPU lowers its generation), width in lanes."""

    generation: Fact[Number]
    generation_max: Fact[Number]
    width: Fact[Number]
    width_max: Fact[Number]
    replays: Fact[Number]


@dataclass(frozen=True, slots=True)
class Memory:
    """Frame buffer."""

    total_mib: Fact[Number]
    reserved_mib: Fact[Number]
    used_mib: Fact[Number]
    free_mib: Fact[Number]


@dataclass(frozen=True, slots=True)
class Power:
    """`draw_watts` up to driver 535; newer drivers tell average and instant apart."""

    draw_watts: Fact[Number]
    average_watts: Fact[Number]
    instant_watts: Fact[Number]
    limit_watts: Fact[Number]
    limit_default_watts: Fact[Number]
    limit_min_watts: Fact[Number]
    limit_max_watts: Fact[Number]


@dataclass(frozen=True, slots=True)
class Clocks:
    """Now and at most."""

    sm_mhz: Fact[Number]
    memory_mhz: Fact[Number]
    sm_max_mhz: Fact[Number]
    memory_max_mhz: Fact[Number]


@dataclass(frozen=True, slots=True)
class Throttle:
    """Why its clocks are lower than they could be. `hw_slowdown` goes with one of the next two."""

    hw_slowdown: Fact[bool]
    hw_thermal: Fact[bool]
    hw_power_brake: Fact[bool]
    sw_thermal: Fact[bool]
    sw_power_cap: Fact[bool]


@dataclass(frozen=True, slots=True)
class Errors:
    """ECC errors since the driver was loaded (volatile) and ever (aggregate)."""

    sram_uncorrectable_volatile: Fact[Number]
    sram_uncorrectable_aggregate: Fact[Number]
    dram_correctable_volatile: Fact[Number]
    dram_correctable_aggregate: Fact[Number]
    dram_uncorrectable_volatile: Fact[Number]
    dram_uncorrectable_aggregate: Fact[Number]
    sram_threshold_exceeded: Fact[bool]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many banks have how many spare rows left."""

    max: Fact[Number]
    high: Fact[Number]
    partial: Fact[Number]
    low: Fact[Number]
    none: Fact[Number]


@dataclass(frozen=True, slots=True)
class Remapped:
    """Rows of the memory that were replaced. `pending`: takes effect at the next reset of the GPU."""

    correctable: Fact[Number]
    uncorrectable: Fact[Number]
    correctable_inactive: Fact[Number]
    uncorrectable_inactive: Fact[Number]
    pending: Fact[bool]
    failure: Fact[bool]
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class Retired:
    """Pages of the memory that are no longer used (GPUs before Ampere)."""

    single_bit: Fact[Number]
    double_bit: Fact[Number]
    pending: Fact[bool]


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A slice of a GPU in MIG mode."""

    index: Fact[Number]
    gpu_instance: Fact[Number]
    compute_instance: Fact[Number]
    memory_total_mib: Fact[Number]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Words of the driver are kept where they are no yes or no: `recovery_action` is `None`, `Reset`, `Reboot` ..."""

    bus_id: Fact[str]
    name: Fact[str]
    architecture: Fact[str]
    uuid: Fact[str]
    serial: Fact[str]
    part_number: Fact[str]
    vbios: Fact[str]
    gsp_firmware: Fact[str]
    minor: Fact[Number]
    persistence: Fact[bool]
    mig: Fact[bool]
    mig_pending: Fact[bool]
    ecc: Fact[bool]
    ecc_pending: Fact[bool]
    compute_mode: Fact[str]
    addressing_mode: Fact[str]
    recovery_action: Fact[str]
    reset_required: Fact[bool]
    performance_state: Fact[str]
    fan_percent: Fact[Number]
    temperature_celsius: Fact[Number]
    memory_temperature_celsius: Fact[Number]
    utilization_percent: Fact[Number]
    fabric_state: Fact[str]
    fabric_status: Fact[str]
    pcie: Pcie
    memory: Memory
    power: Power
    clocks: Clocks
    throttle: Throttle
    errors: Errors
    remapped: Fact[Remapped]
    retired: Fact[Retired]
    mig_devices: Fact[tuple[MigDevice, ...]]
    processes: Fact[tuple[Process, ...]]


@dataclass(frozen=True, slots=True)
class Log:
    """A whole answer. `complete`: it says how many GPUs there are, and they are all here, to the end of the last."""

    driver: Fact[str]
    cuda: Fact[str]
    attached: Fact[Number]
    gpus: tuple[Gpu, ...]
    faults: tuple[Fault, ...]
    complete: bool
