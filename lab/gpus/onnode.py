"""A node's own side of the stand-in: reads its state, writes what its programs read. Runs on the node, as root."""

import fcntl
import os
import re
import stat
import time
from datetime import datetime
from pathlib import Path

from lab.gpus import infiniband, kernel_log, module_file, pci, procfs
from lab.gpus.codec import from_json, to_json
from lab.gpus.state import NodeState, Process
from lab.gpus.view import View

STATE = Path("/etc/lab/gpus.json")
RUN = Path("/run/lab-gpus")  # applied.json, loaded, dmesg, kmsg.seq; and pci, class, driver: mounted over the real ones
KMSG = Path("/dev/kmsg")  # a pipe: journald reads it as the kernel's
_LIBRARIES = ("/usr/lib64/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
_DEVICE = re.compile(r"/dev/nvidia(\d+)\Z")


def state() -> NodeState:
    return from_json(STATE.read_text())


def loaded() -> str:
    """The version of the kernel module that this boot loaded; empty where it loaded none."""
    path = RUN / "loaded"
    return path.read_text().strip() if path.exists() else ""


def library() -> str:
    """The version of libnvidia-ml on the disk, from the name that its link points at; empty where it is not installed."""
    for path in map(Path, _LIBRARIES):
        if path.is_symlink():
            return path.readlink().name.partition(".so.")[2]
    return ""


def view() -> View:
    """All that nvidia-smi sees now."""
    return View(state(), loaded(), library(), datetime.now(), users())


def users() -> dict[int, tuple[Process, ...]]:
    """Processes that hold /dev/nvidiaN open, by N; a process that ends meanwhile is passed over."""
    found: dict[int, dict[int, Process]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            for device in _held(process):
                found.setdefault(device, {})[int(process.name)] = Process(int(process.name), _name(process))
    return {device: tuple(processes.values()) for device, processes in found.items()}


def _held(process: Path) -> set[int]:
    """Numbers of the GPUs that a process has open. None of another user's, where we are not root."""
    held: set[int] = set()
    try:
        for descriptor in (process / "fd").iterdir():
            match = _DEVICE.match(str(descriptor.readlink()))
            held |= {int(match[1])} if match else set()
    except OSError:
        return held
    return held


def _name(process: Path) -> str:
    try:
        return str((process / "exe").readlink())
    except OSError:
        return "[Not Found]"


def save(new: NodeState) -> None:
    """Write the state and let everything follow it."""
    partial = STATE.with_suffix(".new")
    partial.write_text(to_json(new))
    partial.rename(STATE)
    follow()


def follow() -> None:
    """Make files and kernel log agree with the state; only what changed since the last time is told in the log."""
    now = state()
    applied = RUN / "applied.json"
    if applied.exists():
        log(kernel_log.changes(from_json(applied.read_text()), now))
    write_files(now)
    applied.write_text(to_json(now))


def write_files(now: NodeState) -> None:
    driver = loaded()
    _tree(RUN / "pci", pci.files(now), pci.links(now, bool(driver)))
    _tree(RUN / "class/infiniband", infiniband.files(now), infiniband.links(now))
    if driver:
        _tree(RUN / "driver/nvidia", {name: text.encode() for name, text in procfs.files(now, driver).items()}, {})


def _tree(root: Path, files: dict[str, bytes], links: dict[str, str]) -> None:
    """Exactly these below `root`."""
    for name, data in files.items():
        path = root / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for name, target in links.items():
        path = root / name
        if not path.is_symlink():
            path.symlink_to(target)
    kept = {root / name for name in (*files, *links)}
    kept |= {parent for path in kept for parent in path.parents}
    for path in sorted(root.rglob("*"), reverse=True) if root.exists() else ():
        if path not in kept:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def log(lines: list[kernel_log.Line]) -> None:
    """Tell the kernel log: journald by the pipe, one record a write, and dmesg by its file."""
    if not lines:
        return
    with (RUN / "kmsg.seq").open("a+") as counter, (RUN / "dmesg").open("a") as ring:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        sequence = int(counter.read() or 0)
        for line in lines:
            micros = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
            ring.write(kernel_log.dmesg(line, micros))
            _to_journald(kernel_log.kmsg(line, sequence, micros))
            sequence += 1
        counter.truncate(0)
        counter.write(str(sequence))


def _to_journald(record: bytes) -> None:
    if not (KMSG.exists() and stat.S_ISFIFO(KMSG.stat().st_mode)):
        raise OSError(f"{KMSG} is not the pipe that journald reads: this boot did not make it")
    pipe = os.open(KMSG, os.O_RDWR | os.O_CLOEXEC)
    try:
        # packets: else two records could come out of one read, and journald takes one record a read
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_DIRECT)
        os.write(pipe, record)
    finally:
        os.close(pipe)


def module_path(kernel: str) -> Path:
    """Where DKMS puts the module: `extra` on EL, `updates/dkms` on Debian."""
    folder = "updates/dkms" if Path("/etc/debian_version").exists() else "extra"
    return Path("/lib/modules", kernel, folder, "nvidia.ko")


def module_on_disk(kernel: str) -> str:
    """The version that a boot of this kernel would load; empty where there is none."""
    path = module_path(kernel)
    return module_file.version_of(path.read_bytes()) if path.exists() else ""
