"""The table that `nvidia-smi` alone prints. Pure."""

from lab.gpus.state import MigDevice, Process
from lab.gpus.view import REQUIRES_RESET, UNKNOWN_ERROR, Board, View, cuda_of

_ROW = "+-----------------------------------------+------------------------+----------------------+"
_WIDE = "+-----------------------------------------------------------------------------------------+"
_MIG_ROW = "+------------------+----------------------------------+-----------+-----------------------+"
_HEAD = f"""{_ROW}
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"""
_MIG_HEAD = f"""{_WIDE}
| MIG devices:                                                                            |
{_MIG_ROW}
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|"""
_PROCESS_HEAD = f"""{_WIDE}
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|"""
_MODES = {"Default": "Default", "Exclusive_Thread": "E. Thread", "Prohibited": "Prohibited", "Exclusive_Process": "E. Process"}


def render(view: View, indices: tuple[int, ...]) -> str:
    """The tables of the GPUs of these numbers: GPUs, MIG devices where there are any, processes."""
    boards = view.boards(indices)
    versions = f"| NVIDIA-SMI {view.library:<22} Driver Version: {view.loaded:<14} CUDA Version: {cuda_of(view.library):<9}|"
    lines = [view.now.strftime("%a %b %d %H:%M:%S %Y       "), _WIDE, versions, _HEAD]
    for board in boards:
        lines += [*_board(board), _ROW]
    devices = [(board.index, at, device) for board in boards for at, device in enumerate(board.mig_devices)]
    if devices:
        lines += ["", _MIG_HEAD]
        for index, at, device in devices:
            lines += _mig(index, at, device)
    processes = [_process(board.index, process) for board in boards for process in board.gpu.processes]
    none = "|  No running processes found                                                             |"
    return "\n".join([*lines, "", _PROCESS_HEAD, *(processes or [none]), _WIDE]) + "\n"


def _board(board: Board) -> list[str]:
    gpu, product = board.gpu, board.product
    name = product.name if len(product.name) <= 26 else f"{product.name[:23]}..."
    if gpu.mig.current:
        ecc, utilization = "On", "N/A"
    else:
        ecc = str(gpu.ecc.volatile.uncorrectable) if gpu.ecc.current else "Off"
        utilization = _shown(board.reading("utilization", f"{gpu.utilization}%"))
    fan = _shown(board.reading("fan", "N/A" if gpu.fan is None else f"{gpu.fan}%"))
    heat, state = _shown(board.reading("temperature", f"{gpu.temperature}C")), _shown(board.reading("pstate", gpu.pstate))
    draw = _shown(board.reading("power", f"{int(gpu.power_draw)}W"))  # cut, not rounded: 125.71 W is 125W
    persistence, mode = "On" if gpu.persistence else "Off", "Enabled" if gpu.mig.current else "Disabled"
    left = f"|{board.index:>4}  {name:<28} {persistence:>4}  |"
    sensors = f"|{fan:>4} {heat:>5} {state:>5} {draw:>15} / {gpu.power_limit:>4.0f}W |"
    memory = f"{board.used_mib:>7}MiB / {product.memory_total:>6}MiB"
    return [
        f"{left}   {board.bus} Off | {ecc:>20} |",
        f"{sensors} {memory} | {utilization:>7} {_MODES[gpu.compute_mode]:>12} |",
        f"|                                         |                        | {mode:>20} |",
    ]


def _shown(reading: str) -> str:
    return "ERR!" if reading in (UNKNOWN_ERROR, REQUIRES_RESET) else reading


def _mig(index: int, at: int, device: MigDevice) -> list[str]:
    slices = max(device.multiprocessors // 14, 1)
    return [
        f"|{index:>3}{device.gpu_instance:>5}{device.compute_instance:>4}{at:>4}  |"
        f"{device.used_mib:>16}MiB / {device.memory_mib:>5}MiB    |{device.multiprocessors:>3}{0:>7} |"
        f"{slices:>3}{0:>4}{slices:>5}{0:>5}{slices:>5} |",
        f"|                  |{0:>16}MiB / {device.memory_mib:>5}MiB    |           |                       |",
        _MIG_ROW,
    ]


def _process(index: int, process: Process) -> str:
    name = process.name if len(process.name) <= 37 else f"...{process.name[-34:]}"
    return f"|{index:>5}   N/A  N/A {process.pid:>15} {process.kind:>6}   {name:<37} {process.memory_mib:>6}MiB |"
