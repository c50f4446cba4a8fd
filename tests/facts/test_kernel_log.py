"""Lines of kernel logs that the corpus has no sample of: what is known from each."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.facts.formats import plain
from reconciler.facts.kernel_log import Log, parse
from reconciler.model.fact import Absent, Unknown, Value

CASES: list[tuple[str, dict[str, Any]]] = [
    (
        "[ 9.5] pcieport 0000:16:01.0: AER: Corrected error received: 0000:17:00.0",
        {"kind": "aer", "bus": "0000:17:00", "severity": "corrected", "boot_seconds": 9.5},
    ),
    (
        "2026-01-02T03:04:05.6+00:00 n1 kernel: pcieport 0000:00:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:01:00.0",
        {"kind": "aer", "bus": "0000:01:00", "severity": "nonfatal", "time": "2026-01-02T03:04:05.6+00:00"},
    ),
    (
        "[ 9.5] nvidia 0000:17:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
        {"kind": "aer", "bus": "0000:17:00", "severity": "fatal"},
    ),
    (
        "[ 9.5] nvidia 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        {"kind": "aer", "severity": "corrected"},
    ),
    (
        "[ 7.1] nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)",
        {"kind": "sxid", "bus": "0000:c5:00", "code": 24007},
    ),
    (
        "kern  :warn  : [ 7.1] NVRM: Xid (PCI:0000:05:00 GPU-I:03): 31, pid=12, name=a b, Ch 0000001f, intr 0",
        {"kind": "xid", "bus": "0000:05:00", "code": 31, "pid": 12, "process": "a b", "channel": 31, "level": "warn"},
    ),
    ("[1.0] NVRM: Xid (0019:00): 6, PE0002", {"code": 6, "bus": {"unknown": "UnreadableAddress", "detail": "0019:00"}}),
    ("[1.0] NVRM: Xid: 13, 0004", {"code": 13, "bus": {"unknown": "NotSaid", "detail": ""}}),
    ("[1.0] NVRM: Xid (PCI:0000:05:00): 1", {"kind": "xid", "code": {"unknown": "UnreadableLine", "detail": ""}}),
    ("[1.0] NVRM: Xid (PCI:0000:05:00): 13, pid=12", {"code": 13, "pid": {"unknown": "NotSaid", "detail": ""}}),
    ("[1.0] NVRM: Xid (PCI:0000:05:0", {"kind": "xid", "code": {"unknown": "UnreadableLine", "detail": ""}}),
    (
        "Feb  1 10:00:00 n kernel: Kernel panic - not syncing: x",
        {"kind": "panic", "time": {"unknown": "NoYear", "detail": "Feb  1 10:00:00"}},
    ),
    (
        "3,1,2500000,-;INFO: task a:b:12 blocked for more than 120 seconds.",
        {"process": "a:b", "pid": 12, "boot_seconds": 2.5, "level": "err"},
    ),
    (
        "[ 1.0] Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:1kB",
        {"kind": "oom-kill", "pid": 4242, "process": "python"},
    ),
    (
        "[ 1.0] Memory cgroup out of memory: Killed process 7 (vllm: worker) total-vm:1kB",
        {"kind": "oom-kill", "pid": 7, "process": "vllm: worker"},
    ),
    ("[ 1.0] Out of memory: Kill process 9 (a) score 900 or sacrifice child", {"kind": "oom-kill", "pid": 9, "process": "a"}),
    ("[ 1.0] mce: [Hardware Error]: Machine check events logged", {"kind": "hardware-error"}),
    ("[ 1.0] I/O error, dev nvme0n1, sector 8 op 0x0:(READ)", {"kind": "io-error", "device": "nvme0n1"}),
    ("[ 1.0] Buffer I/O error on dev dm-3, logical block 0, async page read", {"kind": "io-error", "device": "dm-3"}),
    ("[ 1.0] XFS (nvme1n1p1): log I/O error -5", {"kind": "io-error", "device": "nvme1n1p1"}),
    ("[ 1.0] EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2", {"kind": "fs-error", "device": "sda1"}),
    ("[ 1.0] XFS (dm-0): Metadata corruption detected at xfs_inode_buf_verify", {"kind": "fs-error", "device": "dm-0"}),
    ("[ 1.0] nvme nvme2: controller is down; will reset: CSTS=0xffffffff", {"kind": "nvme-error", "device": "nvme2"}),
    ("[ 1.0] nvme nvme2: I/O 12 QID 3 timeout, aborting", {"kind": "nvme-error", "device": "nvme2"}),
    ("[ 1.0] mlx5_core 0000:17:00.0: poll_health:827:(pid 0): Fatal error 1 detected", {"kind": "mlx5-error", "bus": "0000:17:00"}),
    (
        "[ 1.0] mlx5_core 0000:17:00.1 ens1f1np1: Link down",
        {"kind": "link-down", "bus": "0000:17:00", "device": "ens1f1np1"},
    ),
    ("[ 1.0] tg3 0000:01:00.0 eno1: Link is down", {"kind": "link-down", "device": "eno1"}),
    ("[ 1.0] ixgbe 0000:01:00.0 eth0: NIC Link is Down", {"kind": "link-down", "device": "eth0"}),
    ("[ 1.0] bond0: link status definitely down for interface eth1, disabling it", {"kind": "link-down", "device": "eth1"}),
    ("[ 1.0] pcieport 0000:16:01.0: pciehp: Slot(12): Link Down", {"kind": "link-down", "bus": "0000:16:01"}),
]
NOISE = [
    "pcieport 0000:00:01.0: AER: enabled with IRQ 26",
    "ata3: SATA link down (SStatus 4 SControl 300)",
    "nvme nvme0: 64/0/0 default/read/poll queues",
    "nvme nvme0: Shutdown timeout set to 8 seconds",
    "mlx5_core 0000:17:00.0: firmware version: 28.39.1002",
    "mlx5_core 0000:17:00.0: Port module event: module 0, Cable plugged",
]


def log(text: str) -> Log:
    found = parse(text)
    assert isinstance(found, Value)
    return found.value


@pytest.mark.parametrize(("line", "said"), CASES)
def test_one_line(line: str, said: dict[str, Any]) -> None:
    (event,) = plain(log(line).events)
    assert {key: event[key] for key in said} == said


@pytest.mark.parametrize("message", NOISE)
def test_boot_noise_is_no_error(message: str) -> None:
    assert log(f"[ 0.5] {message}").events == ()


def test_mismatch_of_a_new_driver() -> None:
    text = (
        "[ 5.0] NVRM: API mismatch: the client 'nvidia-smi' (pid 12)\n"
        "               NVRM: has the version 570.86.15, but this kernel module has\n"
        "               NVRM: the version 570.124.06.  Please\n"
    )
    assert plain(log(text).mismatch) == {"client": "570.86.15", "module": "570.124.06"}


def test_recovery_action() -> None:
    text = "[171167.6] NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    assert log(text).recovery == {"0009:01:00": "Drain and Reset"}


def test_a_storm_is_counted_but_not_listed() -> None:
    found = log("[ 1.0] NVRM: Xid (PCI:0000:05:00): 13, pid=12, x\n" * 5000)
    assert (found.xid_lines, len(found.events), found.unlisted, found.codes) == ({13: 5000}, 1000, 4000, (13,))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", Unknown("Empty")),
        ("-- No entries --\n", Absent("NoEntries")),
        ("dmesg: read kernel buffer failed: Operation not permitted\n", Unknown("PermissionDenied")),
        ("hello\n", Unknown("NotAKernelLog", "hello")),
    ],
)
def test_no_log(text: str, answer: object) -> None:
    found = parse(text)
    assert type(found) is type(answer)
    assert getattr(found, "why", getattr(found, "reason", "")) == getattr(answer, "why", getattr(answer, "reason", ""))
