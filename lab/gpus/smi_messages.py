"""What nvidia-smi says instead of an answer, with the exit status of each. Pure.

Texts: recorded and quoted outputs (tests/data/corpus/nvsmi-error, public issue reports). Statuses: the manual's section RETURN
VALUE; 18 for the version mismatch and 255 for a refused reset are from those reports.
"""

from dataclasses import dataclass

from lab.gpus.state import NodeState
from lab.gpus.view import Board, View, nvml_of


@dataclass(frozen=True)
class Answer:
    """All that goes to standard output, the exit status, and the state afterwards where the call changed it."""

    out: str
    status: int = 0
    state: NodeState | None = None


NO_DRIVER = Answer(
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is "
    "installed and running.\n\n", 9,
)  # fmt: skip
NO_LIBRARY = Answer(
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly "
    "installed and present in your system.\nPlease also try adding directory that contains libnvidia-ml.so to your system PATH.\n",
    12,
)
NO_DEVICES = Answer("No devices were found\n", 6)
UNKNOWN = Answer("Failed to initialize NVML: Unknown Error\n", 255)
BAD_ARGUMENTS = Answer("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n", 2)
NOT_ROOT = Answer("Unable to perform the requested operation: Insufficient Permissions\n", 4)
LOST = 15  # the status, whatever else was answered


def mismatch(library: str) -> Answer:
    return Answer(f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {nvml_of(library)}\n", 18)


def bad_field(name: str) -> Answer:
    return Answer(f'Field "{name}" is not a valid field to query.\n\n', 2)


def lost(board: Board) -> str:
    """The line about a GPU that fell off the bus."""
    bus = board.gpu.bus.upper()
    return (
        f"Unable to determine the device handle for GPU{board.index}: {bus}: GPU is lost.  Reboot the system to recover this GPU\n"
    )


def in_use(boards: list[Board]) -> Answer:
    """A reset refused, because processes use the GPUs."""
    one = len(boards) == 1
    listed = "".join(f"  GPU {board.bus}: In use by another client\n" for board in boards)
    number = "1 device is" if one else f"{len(boards)} devices are"
    which = "this device" if one else "these devices"
    return Answer(
        f"The following GPUs could not be reset:\n{listed}\n{number} currently being used by one or more other processes (e.g., "
        "Fabric Manager, CUDA application, graphics application such as an X server, or a monitoring application such as another "
        f"instance of nvidia-smi). Please first kill all processes using {which} and all compute applications running in the "
        "system.\n", 255,
    )  # fmt: skip


def before_any_answer(view: View) -> Answer | None:
    """What keeps nvidia-smi from saying anything about GPUs; None where nothing does."""
    fault = view.state.driver_fault
    if not view.library:
        return NO_LIBRARY
    if not view.loaded or fault == "not-loaded":
        return NO_DRIVER
    if view.loaded != view.library:
        return mismatch(view.library)
    if fault == "nvml-unknown-error":
        return UNKNOWN
    return NO_DEVICES if fault == "no-devices" or not view.state.gpus else None
