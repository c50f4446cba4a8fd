"""`nvidia-smi topo -m`, `topo -p2p`, `nvlink -s`. Pure."""

from lab.gpus.state import NodeState
from lab.gpus.view import View

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
_P2P_LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""
P2P = ("r", "w", "n", "a", "p", "d", "rw")  # read, write, NVLink, atomics, proprietary, and their combination


def topology(state: NodeState) -> str:
    """The matrix of GPUs and NICs; what `links` leaves out follows from NUMA nodes. Underlined even in a file, as the tool does."""
    gpus = [gpu for gpu in state.gpus if not gpu.lost]
    names = [f"GPU{at}" for at, gpu in enumerate(state.gpus) if not gpu.lost] + [f"NIC{at}" for at in range(len(state.nics))]
    numa = dict(zip(names, [gpu.numa for gpu in gpus] + [nic.numa for nic in state.nics], strict=True))
    columns = "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [f"\t\x1b[4m{columns}\x1b[0m"]
    for at, name in enumerate(names):
        cells = [" X " if other == name else _link(state, numa, name, other) for other in names]
        tail = f"{gpus[at].cpus}\t{gpus[at].numa}\t\tN/A" if at < len(gpus) else "\t\t\t"
        lines.append("\t".join([name, *cells, tail]))
    text = "\n".join(lines) + "\n" + _LEGEND
    if state.nics:
        text += "\nNIC Legend:\n\n" + "".join(f"  NIC{at}: {nic.name}\n" for at, nic in enumerate(state.nics)) + "\n"
    return text


def _link(state: NodeState, numa: dict[str, int], first: str, second: str) -> str:
    named = state.links.get(f"{first}-{second}") or state.links.get(f"{second}-{first}")
    if named and not (named.startswith("NV") and first.startswith("GPU")):
        return named
    if named:
        return _bonded(state, int(first[3:]), int(second[3:]), numa) or "SYS"
    return "NODE" if numa[first] == numa[second] else "SYS"


def _bonded(state: NodeState, first: int, second: int, numa: dict[str, int]) -> str:
    """NV and the number of links that are up; what is left by PCI where none is."""
    ends = ((first, second), (second, first))
    up = min(sum(1 for link in state.gpus[here].nvlinks if link.peer == there and link.active) for here, there in ends)
    return f"NV{up}" if up else ("NODE" if numa[f"GPU{first}"] == numa[f"GPU{second}"] else "SYS")


def peers(state: NodeState, what: str) -> str:
    """Whether GPUs reach each other's memory: by NVLink (n), else over PCIe. Atomics (a) need NVLink."""
    found = [at for at, gpu in enumerate(state.gpus) if not gpu.lost]
    lines = [" \t\x1b[4m" + "\t".join(f"GPU{at}" for at in found) + "\t\x1b[0m"]
    for first in found:
        cells = ["X" if first == second else _peer(state, first, second, what) for second in found]
        lines.append(f" GPU{first}\t" + "\t".join(cells) + "\t")
    return "\n".join(lines) + "\n" + _P2P_LEGEND


def _peer(state: NodeState, first: int, second: int, what: str) -> str:
    bridged = any(link.peer == second and link.active for link in state.gpus[first].nvlinks)
    return "OK" if bridged or what in ("r", "w", "rw", "p", "d") else "NS"


def nvlink_status(view: View, indices: tuple[int, ...]) -> str:
    """One line a link: its speed, or <inactive>."""
    lines = []
    for board in view.boards(indices):
        gpu = board.gpu
        lines.append(f"GPU {board.index}: {board.product.name} (UUID: {gpu.uuid})")
        if not any(link.active for link in gpu.nvlinks):
            lines.append("NVML: Unable to retrieve NVLink information as all links are inactive")
            continue
        for at, link in enumerate(gpu.nvlinks):
            lines.append(f"\t Link {at}: {f'{link.speed:g} GB/s' if link.active else '<inactive>'}")
    return "".join(f"{line}\n" for line in lines)
