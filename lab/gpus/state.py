"""The GPUs and network cards of one node, as values: what /etc/lab/gpus.json holds. Pure."""

from dataclasses import dataclass, field

READINGS = ("fan", "temperature", "power", "clocks", "utilization", "pstate")  # what `unreadable` may name
THROTTLES = (
    "idle", "applications_clocks", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake", "sync_boost",
    "sw_thermal_slowdown", "display_clocks",
)  # fmt: skip
COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
DRIVER_FAULTS = ("", "not-loaded", "no-devices", "nvml-unknown-error")


@dataclass(frozen=True)
class EccCounts:
    """ECC errors since the driver was loaded (volatile) or since the board was made (aggregate)."""

    sram_correctable: int = 0
    sram_parity: int = 0
    sram_secded: int = 0
    dram_correctable: int = 0
    dram_uncorrectable: int = 0

    @property
    def uncorrectable(self) -> int:
        return self.sram_parity + self.sram_secded + self.dram_uncorrectable


@dataclass(frozen=True)
class Ecc:
    current: bool = True
    pending: bool = True
    volatile: EccCounts = EccCounts()
    aggregate: EccCounts = EccCounts()
    sram_threshold_exceeded: bool = False


@dataclass(frozen=True)
class Rows:
    """Remapped rows; `pending`: a reset or reboot activates one, `failure`: none is left to remap to."""

    correctable: int = 0
    uncorrectable: int = 0
    pending: bool = False
    failure: bool = False


@dataclass(frozen=True)
class MigDevice:
    """One MIG instance, such as 3g.40gb."""

    profile: str
    uuid: str
    gpu_instance: int
    compute_instance: int
    multiprocessors: int
    memory_mib: int
    used_mib: int = 0


@dataclass(frozen=True)
class Mig:
    current: bool = False
    pending: bool = False
    devices: tuple[MigDevice, ...] = ()


@dataclass(frozen=True)
class Pcie:
    """The link to the host: generation and lanes now; AER errors that the root port has counted."""

    gen: int = 4
    width: int = 16
    replays: int = 0
    aer_corrected: int = 0
    aer_fatal: int = 0
    tx_kib: int = 0
    rx_kib: int = 0


@dataclass(frozen=True)
class Clocks:
    """MHz."""

    graphics: int = 210
    sm: int = 210
    memory: int = 1512
    video: int = 795


@dataclass(frozen=True)
class NvLink:
    """One NVLink lane group to GPU `peer`; GB/s."""

    peer: int
    speed: float = 25.0
    active: bool = True


@dataclass(frozen=True)
class Process:
    """What the driver says uses a GPU, beside those that hold /dev/nvidiaN open. `kind`: C compute, G graphics."""

    pid: int
    name: str
    memory_mib: int = 0
    kind: str = "C"


@dataclass(frozen=True)
class Gpu:
    """One board. `product` names an entry of products.PRODUCTS; `bus` is 0000:17:00.0.

    `lost`: off the bus. `requires_reset`: its readings say only that. `unreadable`: readings that answer an error.
    `xids`: numbers that the kernel log has told; a new one at the end is told when it is written here. °C, W, MiB, %.
    """

    product: str
    bus: str
    uuid: str
    serial: str
    numa: int = 0
    cpus: str = "0-31"
    lost: bool = False
    requires_reset: bool = False
    unreadable: tuple[str, ...] = ()
    xids: tuple[int, ...] = ()
    persistence: bool = True
    temperature: int = 34
    memory_temperature: int = 37
    power_draw: float = 45.5
    memory_power_draw: float | None = None
    power_limit: float = 300.0
    fan: int | None = None
    pstate: str = "P0"
    clocks: Clocks = Clocks()
    throttle: tuple[str, ...] = ("idle",)
    utilization: int = 0
    memory_utilization: int = 0
    memory_used: int = 0
    compute_mode: str = "Default"
    pcie: Pcie = Pcie()
    ecc: Ecc = Ecc()
    rows: Rows = Rows()
    mig: Mig = Mig()
    nvlinks: tuple[NvLink, ...] = ()
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True)
class Nic:
    """One InfiniBand or Ethernet adapter with one port; `rate` as sysfs writes it, `counters` by file name."""

    name: str
    bus: str
    node_guid: str
    port_guid: str
    firmware: str = "20.43.2566"
    board_id: str = "MT_0000000223"
    numa: int = 0
    state: str = "4: ACTIVE"
    physical_state: str = "5: LinkUp"
    rate: str = "200 Gb/sec (4X HDR)"
    link_layer: str = "InfiniBand"
    lid: int = 1
    sm_lid: int = 1
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeState:
    """All of a node. `driver_fault`: see DRIVER_FAULTS. `hang_s`: seconds that nvidia-smi takes before it answers.
    `module_refused`: from the next boot on the kernel takes no module, as with Secure Boot and a key that it does not know.

    `links`: what joins two devices where it is not SYS or NODE by their NUMA nodes: "GPU0-GPU1" -> "NV12", "GPU0-NIC0" -> "PIX".
    """

    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    driver_fault: str = ""
    hang_s: float = 0.0
    module_refused: bool = False
