"""A made /proc, /sys, /lib of a GPU node, for fragments that take a root: forms as the kernel's documentation gives them."""

from __future__ import annotations

import struct
from pathlib import Path

KERNEL, NEXT = "5.14.0-570.el9.x86_64", "5.14.0-611.el9.x86_64"
VERSION_FILE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U22)\nGCC version:  gcc\n"
AER = "RxErr 0\nBadTLP {}\nBadDLLP 0\nTOTAL_ERR_{} {}\n"


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def device(
    root: Path, address: str, *, kind: str = "0x030200", vendor: str = "0x10de", ident: str = "0x20b5", **files: str
) -> Path:
    """One function on the PCI bus; `files` replaces or adds what /sys has of it."""
    at = root / "sys/bus/pci/devices" / address
    said = {
        "class": kind,
        "vendor": vendor,
        "device": ident,
        "subsystem_vendor": "0x10de",
        "subsystem_device": "0x1533",
        "revision": "0xa1",
        "current_link_speed": "2.5 GT/s PCIe",
        "max_link_speed": "16.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_width": "16",
        "numa_node": "0",
        "enable": "1",
        "power_state": "D0",
        **files,
    }
    for name, text in said.items():
        put(at / name, f"{text}\n")
    for grade, total in (("correctable", "COR"), ("fatal", "FATAL"), ("nonfatal", "NONFATAL")):
        put(at / f"aer_dev_{grade}", AER.format(0, total, 0))
    put(at / "power/runtime_status", "active\n")
    put(at / "config", bytes.fromhex("de10b520") + bytes(60))
    driver = root / "sys/bus/pci/drivers/nvidia"
    driver.mkdir(parents=True, exist_ok=True)
    (at / "driver").symlink_to(driver)
    return at


def module(version: str, license_text: str = "Dual MIT/GPL", *, section: str = ".modinfo") -> bytes:
    """An ELF file of which only the section headers and .modinfo are there: what modinfo reads of a kernel module."""
    info = f"license={license_text}\0version={version}\0supported=external\0firmware=nvidia/{version}/gsp_ga10x.bin\0".encode()
    names = f"\0{section}\0.shstrtab\0".encode()
    body = 64 + len(info) + len(names)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, body, 0, 64, 0, 0, 64, 3, 2)

    def header(name: int, at: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0)

    table = header(0, 0, 0) + header(1, 64, len(info)) + header(2 + len(section), 64 + len(info), len(names))
    return head + info + names + table


def loaded(root: Path, version: str, *gpus: str) -> None:
    """What a loaded driver makes."""
    put(root / "proc/driver/nvidia/version", VERSION_FILE.format(version))
    put(root / "sys/module/nvidia/version", f"{version}\n")
    for gpu in gpus:
        put(root / f"proc/driver/nvidia/gpus/{gpu}/information", "Model: x\n")


def on_disk(root: Path, kernel: str, version: str, path: str = "extra/nvidia.ko", *, listed: bool = True) -> None:
    """A module file, and modules.dep with it or without."""
    put(root / f"lib/modules/{kernel}/{path}", module(version))
    dep = f"kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\nextra/nvidia-uvm.ko: {path}\n" if listed else ""
    put(root / f"lib/modules/{kernel}/modules.dep", f"{dep}{path}: \n" if listed else "kernel/fs/xfs/xfs.ko.xz:\n")


def libraries(root: Path, version: str, folder: str = "usr/lib64") -> None:
    """The two libraries, each a link to the file with its version."""
    for name in ("libcuda.so", "libnvidia-ml.so"):
        put(root / folder / f"{name}.{version}", "x")
        (root / folder / f"{name}.1").symlink_to(f"{name}.{version}")


def process(root: Path, pid: int, *targets: str, **files: str) -> None:
    """A process with these files open."""
    at = root / f"proc/{pid}"
    (at / "fd").mkdir(parents=True)
    for number, target in enumerate(targets):
        (at / "fd" / str(number)).symlink_to(target)
    said = {
        "stat": f"{pid} (python3) S 1 1 1 0 -1 4194560 1 0 0 0 5 1 0 0 20 0 1 0 123456 9 9\n",
        "cmdline": "/opt/ai/env/train/bin/python3\0train.py\0--token=secret\0",
        "cgroup": "0::/system.slice/training.service\n",
        **files,
    }
    for name, text in said.items():
        put(at / name, text)
