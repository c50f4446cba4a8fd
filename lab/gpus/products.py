"""What is the same on every board of a product. Pure.

NVIDIA H200: the recorded output of a host (tests/data/h200). NVIDIA A100 80GB PCIe: no recording was at hand; PCI ids as in
pci.ids, memory, power, clocks, temperatures and banks as commonly published for the board, part numbers and VBIOS only
like real ones.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """One board type. MiB, W, MHz, °C; None: nvidia-smi says N/A."""

    name: str
    brand: str
    architecture: str
    compute_capability: str
    device_id: str
    subsystem_id: str
    vbios: str
    board_part: str
    gpu_part: str
    inforom: tuple[str, str, str, str]
    memory_total: int
    memory_reserved: int
    bar1_total: int
    power: tuple[float, float, float]  # default, min, max
    graphics_steps: tuple[int, int]  # highest and lowest graphics clock; one every 15 MHz
    memory_steps: tuple[int, ...]  # memory clocks, the highest first
    max_video_clock: int
    banks: int
    pcie_gen: int
    module_id: str
    virtualization: str
    limits: tuple[str, ...]  # GPU T.Limit: now is `limits[0]` minus the temperature; shutdown, slowdown, max, memory max
    sparse: str

    @property
    def max_memory_clock(self) -> int:
        return self.memory_steps[0]


A100 = Product(
    name="NVIDIA A100 80GB PCIe", brand="NVIDIA", architecture="Ampere", compute_capability="8.0",
    device_id="20B510DE", subsystem_id="153310DE", vbios="92.00.A0.00.05", board_part="900-21001-0020-000",
    gpu_part="20B5-895-A1", inforom=("1001.0230.00.03", "2.0", "6.16", "N/A"),
    memory_total=81920, memory_reserved=614, bar1_total=131072, power=(300.0, 150.0, 300.0),
    graphics_steps=(1410, 210), memory_steps=(1512,), max_video_clock=1290, banks=640, pcie_gen=4, module_id="1",
    virtualization="None", limits=("N/A", "92 C", "89 C", "85 C", "95 C"), sparse="Disabled",
)  # fmt: skip
H200 = Product(
    name="NVIDIA H200", brand="NVIDIA", architecture="Hopper", compute_capability="9.0",
    device_id="233510DE", subsystem_id="18BF10DE", vbios="96.00.A5.00.1A", board_part="692-2G520-0282-001",
    gpu_part="2335-895-A1", inforom=("G520.0282.02.02", "2.1", "7.16", "N/A"),
    memory_total=143771, memory_reserved=616, bar1_total=262144, power=(700.0, 200.0, 700.0),
    graphics_steps=(1980, 345), memory_steps=(3201, 2201), max_video_clock=1545, banks=3072, pcie_gen=5, module_id="6",
    virtualization="Pass-Through", limits=("87", "-8 C", "-2 C", "0 C", "0 C"), sparse="Disabled",
)  # fmt: skip
PRODUCTS: dict[str, Product] = {product.name: product for product in (A100, H200)}
