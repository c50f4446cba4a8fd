"""The layers of the NVIDIA driver on a node: module files of each kernel, the loaded module, libraries, daemons."""

import glob
import os
import re
import subprocess
from subprocess import DEVNULL, PIPE
from typing import Any, Dict, List

from reconciler.node.work import CODES, ENVIRONMENT

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
FOLDERS = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/lib", "/usr/lib", "/usr/local/lib")
OURS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/nvidia/driver/usr/lib64")
UNITS = ("nvidia-fabricmanager.service", "nvidia-persistenced.service")
# where depmod looks first, and where distributions and DKMS put it
USUAL = ("updates/dkms", "updates", "extra", "extra/nvidia*", "weak-updates/nvidia*", "kernel/drivers/video", "kernel/nvidia*")
LISTED = re.compile(rb"^([^:\n]{0,300}/nvidia\.ko[.a-z0-9]{0,8}):", re.MULTILINE)
MODINFO = 1 << 16  # bytes of an ELF section


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`root` stands before every path; `modinfo`: ask modinfo too, which unpacks compressed modules (up to a second each).

    -> {"running", "kernels": {release: {"path", "listed" in modules.dep, "info": .modinfo as text or {"error"}}}, "loaded",
    "module", "libraries": [{"name", "path", "real"}], "units": {name: {"file", "pids"}}, "fabric_manager": {"out", "status"}}.
    """
    root = arguments.get("root", "")
    answer: Dict[str, Any] = {"running": os.uname().release if not root else arguments["running"]}
    answer["kernels"] = _kernels(root, arguments["modinfo"])
    answer["loaded"] = _text(root + "/proc/driver/nvidia/version")
    answer["module"] = _text(root + "/sys/module/nvidia/version")
    answer["libraries"] = _libraries(root)
    answer["units"] = {name: _unit(root, name) for name in UNITS}
    switched = os.path.exists(root + "/proc/driver/nvidia-nvswitch")
    if switched and not root:
        answer["fabric_manager"] = _run(["nv-fabricmanager", "--version"])
    return answer


def _error(e: OSError) -> Dict[str, Any]:
    return {"error": CODES.get(e.errno or 0, "io"), "said": e.strerror or ""}


def _text(path: str) -> Any:
    try:
        with open(path, "rb") as f:
            return f.read(1 << 14).decode("utf-8", "replace")
    except OSError as e:
        return _error(e)


def _run(argv: List[str]) -> Dict[str, Any]:
    try:
        done = subprocess.run(argv, env=ENVIRONMENT, cwd="/", stdin=DEVNULL, stdout=PIPE, stderr=PIPE, timeout=8)
    except subprocess.TimeoutExpired:
        return {"error": "deadline"}
    except OSError as e:
        return _error(e)
    said = done.stdout if done.returncode == 0 else done.stderr or done.stdout
    return {"out": said[: 1 << 14].decode("utf-8", "replace"), "status": done.returncode}


def _kernels(root: str, modinfo: bool) -> Any:
    top = root + "/lib/modules"
    try:
        releases = sorted(name for name in os.listdir(top) if os.path.isdir(top + "/" + name))
    except OSError as e:
        return _error(e)
    return {release: _kernel(top + "/" + release, modinfo) for release in releases}


def _kernel(folder: str, modinfo: bool) -> Dict[str, Any]:
    """The module that modprobe would take, by modules.dep; else one that lies there and is not listed."""
    listed = ""
    try:
        with open(folder + "/modules.dep", "rb") as f:
            found = LISTED.search(f.read())
        listed = found.group(1).decode("utf-8", "replace") if found else ""
    except OSError as e:
        if CODES.get(e.errno or 0) != "missing":
            return _error(e)
    path = os.path.join(folder, listed) if listed else ""
    if not listed or not os.path.exists(path):
        lying = [p for usual in USUAL for p in sorted(glob.glob(folder + "/" + usual + "/nvidia.ko*"))]
        if not lying:
            return {"error": "missing"}
        path, listed = lying[0], ""
    return {"path": path, "listed": bool(listed), "info": _info(path, modinfo)}


def _info(path: str, modinfo: bool) -> Any:
    if modinfo:
        ran = _run(["modinfo", path])
        if ran.get("status") == 0:
            return ran["out"]
    try:
        with open(path, "rb") as f:
            section = _modinfo(f)
    except OSError as e:
        return _error(e)
    except (ValueError, IndexError):
        return {"error": "io", "said": "no plain ELF file"}
    return "\n".join(entry.replace("=", ": ", 1) for entry in section.decode("utf-8", "replace").split("\0") if entry)


def _modinfo(f: Any) -> bytes:
    """The section .modinfo of a 64-bit little-endian ELF file, by its section headers: elf(5). ValueError for another file."""

    def number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    def read(at: int, size: int) -> bytes:
        f.seek(at)
        data = bytes(f.read(size))
        if len(data) != size:
            raise ValueError
        return data

    head = read(0, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise ValueError
    at, size, count, names = number(head, 40, 8), number(head, 58, 2), number(head, 60, 2), number(head, 62, 2)
    if size < 64 or count > 1 << 14 or names >= count:
        raise ValueError
    table = read(at, size * count)
    headers = [table[n * size : (n + 1) * size] for n in range(count)]
    strings = read(number(headers[names], 24, 8), min(number(headers[names], 32, 8), MODINFO))
    for header in headers:
        start = number(header, 0, 4)
        if strings[start : start + 9] == b".modinfo\0":
            return read(number(header, 24, 8), min(number(header, 32, 8), MODINFO))
    raise ValueError


def _libraries(root: str) -> List[Dict[str, str]]:
    """Each real file once, by the folder where it is found first."""
    folders = list(OURS + FOLDERS)
    for path in sorted(glob.glob(root + "/etc/ld.so.conf.d/*.conf"))[:100]:
        said = _text(path)
        folders += [line.strip() for line in said.split("\n") if line.startswith("/")] if isinstance(said, str) else []
    found: Dict[str, Dict[str, str]] = {}
    for folder in folders:
        for name in LIBRARIES:
            path = root + folder + "/" + name
            if os.path.exists(path):
                real = os.path.realpath(path)
                found.setdefault(real, {"name": name, "path": path, "real": os.path.basename(real)})
    return list(found.values())


def _unit(root: str, name: str) -> Dict[str, Any]:
    """`pids`: what runs in the unit's cgroup (version 2, or systemd's own hierarchy of version 1)."""
    files = [path for folder in ("/etc", "/run", "/usr/lib", "/lib") for path in [folder + "/systemd/system/" + name]]
    about: Dict[str, Any] = {"file": next((path for path in files if os.path.exists(root + path)), "")}
    for group in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup"):
        pids = _text(root + group + "/system.slice/" + name + "/cgroup.procs")
        if isinstance(pids, str):
            about["pids"] = [int(pid) for pid in pids.split() if pid.isdigit()]
            break
    else:
        about["pids"] = [] if os.path.isdir(root + "/sys/fs/cgroup") else {"error": "missing"}
    return about
