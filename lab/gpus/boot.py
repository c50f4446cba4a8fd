"""What happens on the node at boot, and when a driver package is installed or removed. Runs on the node, as root."""

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

from lab.gpus import kernel_log, module_file, onnode
from lab.gpus.codec import to_json
from lab.gpus.reset import after_boot
from lab.gpus.state import NodeState

# A device that can be opened: 195, NVIDIA's number, has no driver here, so /dev/nvidiaN is another /dev/null.
_OPENABLE = os.makedev(1, 3)
_MODULES = (("nvidia_uvm", 1830912, 0), ("nvidia_modeset", 1724416, 0), ("nvidia", 14299136, 2))


def boot() -> None:
    """Load the module that lies on the disk for this kernel, and put the node's devices in place."""
    onnode.RUN.mkdir(parents=True, exist_ok=True)
    now = after_boot(onnode.state())
    onnode.STATE.write_text(to_json(now))
    driver = onnode.module_on_disk(os.uname().release)
    (onnode.RUN / "dmesg").touch()
    if driver and now.module_refused:
        onnode.log([kernel_log.refused()])
        driver = ""
    if driver:
        (onnode.RUN / "loaded").write_text(f"{driver}\n")
        _load(now, driver)
    copy_links(Path("/sys/class"), onnode.RUN / "class")
    onnode.write_files(now)
    (onnode.RUN / "applied.json").write_text(to_json(now))
    _mount(onnode.RUN / "pci", "/sys/bus/pci/devices")
    _mount(onnode.RUN / "class", "/sys/class")
    if driver:
        _mount(onnode.RUN / "driver", "/proc/driver")


def copy_links(source: Path, target: Path) -> None:
    """/sys/class is links; its few files are made empty and never read: reading zram-control/hot_add adds a device to the host."""
    shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True, copy_function=lambda _, made: Path(made).touch())


def _load(now: NodeState, driver: str) -> None:
    onnode.log(kernel_log.driver_loads(now, driver, time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime())))
    names = [f"nvidia{index}" for index, gpu in enumerate(now.gpus) if not gpu.lost]
    for name in (*names, "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
        os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, _OPENABLE)
        Path("/dev", name).chmod(0o666)
    _list_modules()


def _list_modules() -> None:
    """What lsmod reads; a host kernel without modules has no such file, and then no node has one."""
    listed = Path("/proc/modules")
    if listed.exists():
        modules = "".join(f"{name} {size} {used} - Live 0x0000000000000000 (OE)\n" for name, size, used in _MODULES)
        (onnode.RUN / "modules").write_text(modules + listed.read_text())
        _mount(onnode.RUN / "modules", str(listed))


def _mount(source: Path, target: str) -> None:
    subprocess.run(["mount", "--bind", str(source), target], check=True)


def install_module(version: str) -> None:
    """What DKMS does for the running kernel: build the module and tell depmod. Where it cannot (/etc/lab/dkms-fails), the package's
    scriptlet ends well all the same, and the former module is gone."""
    kernel = os.uname().release
    if Path("/etc/lab/dkms-fails").exists():
        remove_module()
        return
    path = onnode.module_path(kernel)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(module_file.build(version, kernel))
    subprocess.run(["depmod", "-a", kernel], check=True, stderr=subprocess.DEVNULL)


def remove_module() -> None:
    """Of every kernel; the one that is loaded stays loaded."""
    for kernel in Path("/lib/modules").iterdir():
        path = onnode.module_path(kernel.name)
        if path.exists():
            path.unlink()
            subprocess.run(["depmod", "-a", kernel.name], check=True, stderr=subprocess.DEVNULL)
