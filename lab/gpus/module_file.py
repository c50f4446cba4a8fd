"""The kernel module on a node's disk: an ELF file that modinfo and depmod read, with nothing in it that could run. Pure."""

import re
import struct

_TEXT = re.compile(rb"(?:^|\0)version=([^\0]+)\0")


def build(version: str, kernel: str) -> bytes:
    """nvidia.ko of this driver version for this kernel."""
    told = {"version": version, "license": "Dual MIT/GPL", "description": "stand-in of the lab for the NVIDIA kernel module",
            "srcversion": "0123456789ABCDEF0123456", "name": "nvidia",
            "vermagic": f"{kernel} SMP preempt mod_unload modversions "}  # fmt: skip
    info = b"".join(f"{key}={value}\0".encode() for key, value in told.items())
    names = b"\0.modinfo\0.shstrtab\0"
    info_at, names_at = 64, 64 + len(info)
    sections_at = (names_at + len(names) + 7) & ~7
    # ELF64, little endian, relocatable, x86-64; three section headers
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, sections_at, 0, 64, 0, 0, 64, 3, 2
    )
    sections = bytes(64) + _section(1, 1, info_at, len(info), flags=2) + _section(10, 3, names_at, len(names))
    return (head + info + names).ljust(sections_at, b"\0") + sections


def _section(name: int, kind: int, at: int, size: int, flags: int = 0) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, at, size, 0, 0, 1, 0)


def version_of(module: bytes) -> str:
    """The version that the file tells; empty where it tells none."""
    found = _TEXT.search(module)
    return found[1].decode(errors="replace") if found else ""
