"""What the kernel says about GPUs: when the driver loads, and when something in the state changes. Pure.

Texts: lines of recorded logs (tests/data/corpus/kernel-log) and drivers/pci/pcie/aer.c.
"""

from dataclasses import dataclass

from lab.gpus.products import PRODUCTS
from lab.gpus.state import Gpu, NodeState

_NOBODY = "pid='<unknown>', name=<unknown>"
XIDS: dict[int, str] = {  # number -> what follows it
    13: f"{_NOBODY}, Graphics Exception: ESR 0x5067b0=0x12d000e 0x5067b4=0x24 0x5067a8=0xf81eb60 0x5067ac=0x1174",
    31: "pid=1942, name=python3, channel 0x00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
        "0x7f92_9a53d000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: "pid=1942, name=python3, Ch 00000018",
    45: "pid=1942, name=python3, Ch 0000000f",
    48: f"{_NOBODY}, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x18f31d80 "
        "partition 16, subpartition 3.",
    62: "pid=1942, 0c83(1870) 00000000 00000000",
    63: f"{_NOBODY}, Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate.",
    64: f"{_NOBODY}, Row Remapper: Failed to remap row 0x0000000018f31d80, all reserved rows for bank are remapped",
    74: f"{_NOBODY}, NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: f"{_NOBODY}, GPU has fallen off the bus.",
    94: f"{_NOBODY}, Contained: SM (0x1). RST: No, D-RST: No",
    95: "pid=5171, Uncontained: FBHUB. RST: Yes, D-RST: No",
    119: "pid=5678, name=python3, Timeout waiting for RPC from GSP0! Expected function 76 (GSP_RM_CONTROL) (0x20800a4c 0x4).",
    154: "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
}  # fmt: skip
ERR, WARNING, INFO = 3, 4, 6  # syslog(3)


@dataclass(frozen=True)
class Line:
    """One record of the kernel log; `text` may have several lines."""

    level: int
    text: str


def xid(gpu: Gpu, number: int) -> Line:
    return Line(ERR, f"NVRM: Xid (PCI:{gpu.bus.rsplit('.', maxsplit=1)[0]}): {number}, {XIDS[number]}")


def driver_loads(state: NodeState, version: str, built: str) -> list[Line]:
    """A boot with a driver; `built`: when it was, as date(1) prints. A GPU that is lost does not answer the probe."""
    lines = [
        Line(WARNING, "nvidia: loading out-of-tree module taints kernel."),
        Line(INFO, "nvidia-nvlink: Nvlink Core is being initialized, major device number 235"),
    ]
    gone = [gpu for gpu in state.gpus if gpu.lost]
    for gpu in gone:
        device = PRODUCTS[gpu.product].device_id[:4].lower()
        lines.append(Line(ERR, f"NVRM: The NVIDIA GPU {gpu.bus}\nNVRM: (PCI ID: 10de:{device}) installed in this system has\n"
                               "NVRM: fallen off the bus and is not responding to commands."))  # fmt: skip
    if gone:
        lines.append(Line(ERR, f"NVRM: The NVIDIA probe routine failed for {len(gone)} device(s)."))
    module = f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (dvs-builder@lab)  {built}"
    return [*lines, Line(INFO, module)]


def refused() -> Line:
    """Secure Boot, and a module whose key the machine does not know: kernel/module/signing.c (test-made)."""
    return Line(INFO, "Loading of module with unavailable key is rejected")


def mismatch(client: str, pid: int, library: str, loaded: str) -> Line:
    """The driver refuses a program that was built with another version's library."""
    return Line(ERR, f"NVRM: API mismatch: the client '{client}' (pid {pid})\nNVRM: has the version {library}, but this kernel "
                     f"module has\nNVRM: the version {loaded}.  Please make sure that this kernel module and all\nNVRM: NVIDIA "
                     "driver components have the same version.")  # fmt: skip


def changes(before: NodeState, after: NodeState) -> list[Line]:
    """What the kernel says when the state goes from one to the other; GPUs are matched by their bus address."""
    known = {gpu.bus: gpu for gpu in before.gpus}
    lines: list[Line] = []
    for gpu in after.gpus:
        if gpu.bus in known:
            lines += _gpu(known[gpu.bus], gpu)
    return lines


def _gpu(old: Gpu, new: Gpu) -> list[Line]:
    numbers = list(new.xids[len(old.xids) :]) if new.xids[: len(old.xids)] == old.xids else list(new.xids)
    if new.ecc.volatile.dram_uncorrectable > old.ecc.volatile.dram_uncorrectable:
        numbers.append(48)
    if new.rows.pending and not old.rows.pending:
        numbers.append(63)
    if new.rows.failure and not old.rows.failure:
        numbers.append(64)
    lines = [xid(new, number) for number in numbers if number != 79 or old.lost]
    if new.lost and not old.lost:
        lines += [xid(new, 79), Line(ERR, f"NVRM: GPU {new.bus}: GPU has fallen off the bus.")]
    return lines + _aer(old, new)


def _aer(old: Gpu, new: Gpu) -> list[Line]:
    port = "0000:" + f"{int(new.bus.split(':')[1], 16) - 1:02x}:00.0"
    device = f"[10de:{PRODUCTS[new.product].device_id[:4].lower()}]"
    lines: list[Line] = []
    if new.pcie.aer_corrected > old.pcie.aer_corrected:
        lines += [
            Line(WARNING, f"pcieport {port}: AER: Corrected error received: {new.bus}"),
            Line(WARNING, f"nvidia {new.bus}: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
            Line(WARNING, f"nvidia {new.bus}:   device {device} error status/mask=00000001/0000a000"),
            Line(WARNING, f"nvidia {new.bus}:    [ 0] RxErr                  (First)"),
        ]
    if new.pcie.aer_fatal > old.pcie.aer_fatal:
        lines += [
            Line(ERR, f"pcieport {port}: AER: Uncorrected (Fatal) error received: {new.bus}"),
            Line(ERR, f"nvidia {new.bus}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"),
            Line(ERR, f"nvidia {new.bus}:   device {device} error status/mask=00040000/00400000"),
            Line(ERR, f"nvidia {new.bus}:    [18] MalfTLP                (First)"),
        ]
    return lines


def kmsg(line: Line, sequence: int, micros: int) -> bytes:
    """A record as /dev/kmsg gives it (Documentation/ABI/testing/dev-kmsg): facility kernel, control characters escaped."""
    text = line.text.replace("\\", "\\x5c").replace("\n", "\\x0a")
    return f"{line.level},{sequence},{micros},-;{text}\n".encode()


def dmesg(line: Line, micros: int) -> str:
    """The same as syslog(2) gives it, each line with its prefix: what `dmesg -F` reads."""
    head = f"<{line.level}>[{micros // 1_000_000:5}.{micros % 1_000_000:06}] "
    return "".join(f"{head}{each}\n" for each in line.text.split("\n"))
