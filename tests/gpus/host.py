"""The H200 host whose output is recorded in tests/data/h200, as a state of the stand-in."""

from datetime import datetime
from pathlib import Path

from lab.gpus.defaults import default_state
from lab.gpus.products import H200
from lab.gpus.state import Clocks, Gpu, NodeState, Pcie
from lab.gpus.view import View

RECORDED = Path(__file__).parent.parent / "data" / "h200"
DRIVER = "580.95.05"
NOW = datetime(2026, 11, 30, 7, 40, 22, 696000)


def h200() -> View:
    """The values that the host had."""
    gpu = Gpu(
        product=H200.name, bus="0000:00:06.0", uuid="GPU-00000000-0000-4000-8000-000000000001", serial="1650000000001",
        cpus="0-15", temperature=34, memory_temperature=37, power_draw=125.71, memory_power_draw=44.35, power_limit=700.0,
        throttle=(), clocks=Clocks(1980, 1980, 3201, 1545), pcie=Pcie(gen=5, tx_kib=814, rx_kib=430),
    )  # fmt: skip
    return View(NodeState((gpu,)), "580.159.04", "580.159.04", NOW)


def node(state: NodeState | None = None, loaded: str = DRIVER, library: str = DRIVER) -> View:
    """A lab node."""
    return View(default_state("gpu01") if state is None else state, loaded, library, NOW)
