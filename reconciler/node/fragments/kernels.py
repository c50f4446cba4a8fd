"""Kernels below /lib/modules, and the nvidia module that each of them has."""

import glob
import os
import re
import struct
from typing import Any, Dict, Iterator, Optional

from reconciler.node.work import CODES

# where kmod, dkms, weak-modules and the distributions' own packages put it: the whole tree has thousands of folders
_PLACES = re.compile(r"(?:extra|updates|weak-updates|kernel/nvidia[^/]*|kernel/drivers/video)$")
_MODULE = re.compile(r"nvidia\.ko(?:\.xz|\.zst|\.gz)?$")


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`root`: `/` but in tests.

    -> {"running": release, "machine": machine, "entries": {path: text | {"error": code}} of the boot loader,
    "kernels": {release: {"image", "headers", "listed", "modules": {path: version | null}}}}.
    `image`: a kernel to boot is there. `headers`: what a module is built against is there (kernel-devel, linux-headers).
    `listed`: modules.dep names an nvidia module, so that modprobe finds it; null where there
    is no modules.dep. A version is null where the file is compressed or says none: it is not unpacked for that.
    """
    name, root = os.uname(), arguments["root"]
    found: Dict[str, Any] = {"running": name.release, "machine": name.machine, "kernels": {}, "entries": _entries(root)}
    top = os.path.join(root, "lib/modules")
    try:
        releases = sorted(os.listdir(top))
    except OSError as e:
        found["kernels"] = {"error": CODES.get(e.errno or 0, "io")}
        return found
    for release in releases:
        folder = os.path.join(top, release)
        if os.path.isdir(folder):
            images = (os.path.join(folder, "vmlinuz"), os.path.join(root, "boot", "vmlinuz-" + release))
            found["kernels"][release] = {
                "image": any(os.path.exists(image) for image in images),
                "headers": os.path.isdir(os.path.join(folder, "build")),
                "listed": _listed(folder),
                "modules": {path[len(folder) + 1 :]: _version(path) for path in _modules(folder)},
            }
    return found


def _entries(root: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for path in sorted(glob.glob(os.path.join(root, "boot/loader/entries/*.conf"))):
        name = "/" + os.path.relpath(path, root)
        try:
            with open(path, "rb") as f:
                found[name] = f.read(1 << 16).decode("utf-8", "replace")
        except OSError as e:
            found[name] = {"error": CODES.get(e.errno or 0, "io")}
    return found


def _listed(folder: str) -> Optional[bool]:
    try:
        with open(os.path.join(folder, "modules.dep"), "rb") as f:
            return re.search(rb"(?:^|/)nvidia\.ko(?:\.xz|\.zst|\.gz)?:", f.read(), re.MULTILINE) is not None
    except OSError:
        return None


def _modules(folder: str) -> Iterator[str]:
    for top in (folder, os.path.join(folder, "kernel"), os.path.join(folder, "kernel/drivers")):
        try:
            names = sorted(os.listdir(top))
        except OSError:
            continue
        for name in names:
            if _PLACES.match(os.path.join(top, name)[len(folder) + 1 :]):
                for at, _, files in os.walk(os.path.join(top, name)):
                    for file in sorted(filter(_MODULE.match, files)):
                        yield os.path.join(at, file)


def _version(path: str) -> Optional[str]:
    """`version` of the section .modinfo of an uncompressed module: a few small reads instead of one of a hundred megabytes."""
    try:
        with open(path, "rb") as f:
            head = f.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return None
            at, size, count, names = struct.unpack_from("<Q", head, 40) + struct.unpack_from("<HHH", head, 58)
            f.seek(at)
            table = f.read(size * count)
            if len(table) < size * count:
                return None  # it was cut
            sections = [struct.unpack_from("<IIQQQQ", table, i * size) for i in range(count)]
            f.seek(sections[names][4])
            words = f.read(min(sections[names][5], 1 << 20))
            for section in sections:
                if words[section[0] :].startswith(b".modinfo\0"):
                    f.seek(section[4])
                    said = re.search(rb"(?:^|\0)version=([^\0]{1,60})", f.read(min(section[5], 1 << 20)))
                    return said.group(1).decode("ascii", "replace") if said else None
    except (OSError, struct.error, IndexError, ValueError, MemoryError):
        return None  # no module of this machine: its name alone was said to be there
    return None
