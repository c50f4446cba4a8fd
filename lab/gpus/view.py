"""What nvidia-smi sees when it is called: the state, the driver's versions, the processes, the time. Pure."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from lab.gpus.products import PRODUCTS, Product
from lab.gpus.state import Gpu, MigDevice, NodeState, Process

# the CUDA version of each driver branch (CUDA Toolkit release notes, table of driver versions)
_CUDA = {570: "12.8", 575: "12.9", 580: "13.0", 590: "13.1", 595: "13.2", 610: "13.3"}
_BITS = {  # nvml.h, nvmlClocksEventReason*
    "idle": 0x1, "applications_clocks": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake": 0x80, "display_clocks": 0x100,
}  # fmt: skip
UNKNOWN_ERROR = "Unknown Error"
REQUIRES_RESET = "GPU requires reset"


def cuda_of(driver: str) -> str:
    """The newest CUDA that a driver runs; N/A for a branch that is not in the table."""
    branch = driver.split(".", maxsplit=1)[0]
    return _CUDA.get(int(branch), "N/A") if branch.isdigit() else "N/A"


def nvml_of(driver: str) -> str:
    """580.95.05 -> 580.95: NVML says two parts."""
    return ".".join(driver.split(".")[:2])


@dataclass(frozen=True)
class View:
    """`loaded`: the kernel module's version, empty where none is; `library`: that of libnvidia-ml on the disk.

    `users`: processes that hold /dev/nvidiaN open, by N.
    """

    state: NodeState
    loaded: str
    library: str
    now: datetime
    users: dict[int, tuple[Process, ...]] = field(default_factory=dict)

    def boards(self, only: tuple[int, ...] = ()) -> "list[Board]":
        """All GPUs, or those of these numbers; lost ones too."""
        indices = only or range(len(self.state.gpus))
        return [Board(index, self._used(index), PRODUCTS[self.state.gpus[index].product], self.library) for index in indices]

    def _used(self, index: int) -> Gpu:
        gpu = self.state.gpus[index]
        known = {process.pid for process in gpu.processes}
        extra = tuple(process for process in self.users.get(index, ()) if process.pid not in known)
        return replace(gpu, processes=gpu.processes + extra)


@dataclass(frozen=True)
class Board:
    """One GPU as the tools show it: number, state, product, driver version."""

    index: int
    gpu: Gpu
    product: Product
    driver: str

    def reading(self, name: str, value: str) -> str:
        """The value of a sensor, or what the tool says instead."""
        if self.gpu.requires_reset:
            return REQUIRES_RESET
        return UNKNOWN_ERROR if name in self.gpu.unreadable else value

    @property
    def bus(self) -> str:
        """00000000:17:00.0, in capitals, as nvidia-smi writes it."""
        return f"0000{self.gpu.bus}".upper()

    @property
    def used_mib(self) -> int:
        return self.gpu.memory_used + sum(process.memory_mib for process in self.gpu.processes)

    @property
    def free_mib(self) -> int:
        # nvidia-smi rounds its three parts one by one, upwards
        return self.product.memory_total - self.product.memory_reserved - self.used_mib + 1

    @property
    def mig_devices(self) -> tuple[MigDevice, ...]:
        return self.gpu.mig.devices if self.gpu.mig.current else ()

    @property
    def throttle_mask(self) -> int:
        return sum(_BITS[name] for name in self.throttles)

    @property
    def throttles(self) -> set[str]:
        """Reasons that hold; a hardware reason also shows as the general one."""
        found = set(self.gpu.throttle)
        return found | {"hw_slowdown"} if found & {"hw_thermal_slowdown", "hw_power_brake"} else found

    @property
    def recovery(self) -> str:
        """GPU Recovery Action, in the words of nvmlDeviceGpuRecoveryAction_t."""
        if self.gpu.requires_reset:
            return "Reset"
        return "Drain and Reset" if self.gpu.rows.pending else "None"
