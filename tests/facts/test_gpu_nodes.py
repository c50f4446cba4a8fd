"""PCI devices, driver and users of the GPUs, from made trees through the fragments to values: every state of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import driver, gpu_users, pci_gpus
from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Ask, Raw
from reconciler.node.fragments import driver as driver_fragment
from reconciler.node.fragments import gpu_users as users_fragment
from reconciler.node.fragments import pci as pci_fragment
from reconciler.render.headlines import headline
from tests.nodes import gpu_tree
from tests.nodes.gpu_tree import KERNEL, NEXT

LOOKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "driver": driver_fragment.look,
    "pci": pci_fragment.look,
    "gpu_users": users_fragment.look,
}
ONE, TWO, SWITCH = "0000:17:00.0", "0000:9b:00.0", "0000:c5:00.0"


def answers(fact: LiveFact, root: Path) -> tuple[Raw, ...]:
    """What the fragments of a fact say of a made tree."""
    raws = []
    for part in fact.parts(About()):
        assert isinstance(part, Ask)
        said = LOOKS[part.fragment]({**json.loads(part.arguments), "root": str(root), "running": KERNEL})
        raws.append(Raw(json.dumps(said).encode(), status=0))
    return tuple(raws)


def asked(fact: LiveFact, root: Path) -> Any:
    return plain(fact.read(answers(fact, root)))


def test_devices_of_nvidia_alone_by_class(tmp_path: Path) -> None:
    gpu_tree.device(tmp_path, ONE)
    gpu_tree.device(tmp_path, "0000:17:00.1", kind="0x040300", ident="0x10f0")  # a GPU's sound device
    gpu_tree.device(tmp_path, SWITCH, kind="0x068000", ident="0x1af1")
    gpu_tree.device(tmp_path, "0000:01:00.0", kind="0x030000", vendor="0x1a03")  # the board's own display
    found = asked(pci_gpus.FACT, tmp_path)
    assert [gpu["address"] for gpu in found["gpus"]] == [ONE]
    assert [switch["address"] for switch in found["switches"]] == [SWITCH]
    gpu = found["gpus"][0]
    assert (gpu["device"], gpu["subsystem"], gpu["revision"], gpu["driver"]) == ("20b5", "10de:1533", "a1", "nvidia")
    assert (gpu["speed"], gpu["speed_max"], gpu["width"], gpu["width_max"]) == (2.5, 16.0, 16, 16)
    assert (gpu["aer"], gpu["answers"]) == ({"correctable": 0, "nonfatal": 0, "fatal": 0}, True)
    assert headline("pci-gpus", found) == "1 x A100 PCIe 80GB; 1 x A100 NVSwitch (switches)"
    assert "speed" not in pci_gpus.stable(found)["gpus"][0]


def test_a_gpu_that_fell_off_the_bus_and_one_that_is_narrow(tmp_path: Path) -> None:
    gone = gpu_tree.device(tmp_path, ONE, current_link_width="63", current_link_speed="Unknown", numa_node="-1")
    (gone / "config").write_bytes(b"\xff" * 64)
    gpu_tree.put(gone / "aer_dev_fatal", gpu_tree.AER.format(2, "FATAL", 2))
    (gone / "driver").unlink()
    gpu_tree.device(tmp_path, TWO, current_link_width="8")
    first, second = (found := asked(pci_gpus.FACT, tmp_path))["gpus"]
    assert (first["answers"], first["driver"], first["numa_node"]) == (False, {"absent": "NotBound"}, {"absent": "NoNumaNode"})
    assert (first["width"]["unknown"], first["speed"]["unknown"]) == ("NoLink", "UnreadableCell")
    assert (first["aer"]["fatal"], second["width"]) == (2, 8)
    assert headline("pci-gpus", found) == (
        f"2 x A100 PCIe 80GB; does not answer: {ONE}; narrower than it could be: {TWO}; without a driver: {ONE}; "
        f"fatal PCIe errors: {ONE}"
    )


def test_a_suspended_device_is_not_woken(tmp_path: Path) -> None:
    gpu_tree.put(gpu_tree.device(tmp_path, ONE) / "power/runtime_status", "suspended\n")
    (gpu,) = asked(pci_gpus.FACT, tmp_path)["gpus"]
    assert [gpu[key]["unknown"] for key in ("answers", "speed", "width")] == ["Asleep"] * 3


def test_no_device_no_bus_and_one_that_cannot_be_read_are_three_answers(tmp_path: Path) -> None:
    assert asked(pci_gpus.FACT, tmp_path)["unknown"] == "NoPciBus"
    gpu_tree.device(tmp_path, "0000:01:00.0", vendor="0x8086")
    assert asked(pci_gpus.FACT, tmp_path) == {"absent": "NoDevices"}
    (gpu_tree.device(tmp_path, ONE) / "vendor").unlink()
    found = asked(pci_gpus.FACT, tmp_path)
    assert (found["gpus"], found["unread"]) == ([], [ONE])
    assert plain(pci_gpus.count(pci_gpus.inventory(answers(pci_gpus.FACT, tmp_path)[0])))["unknown"] == "UnreadDevices"


def test_this_machines_bus_is_what_lspci_or_sys_shows() -> None:
    said = pci_fragment.look({"vendor": "0x1af4", "classes": ["0x"]})["devices"]
    truth = {p.name for p in Path("/sys/bus/pci/devices").iterdir() if (p / "vendor").read_text().strip() == "0x1af4"}
    assert set(said) == truth
    assert all(
        about["driver"] == Path(f"/sys/bus/pci/devices/{a}/driver").readlink().name
        for a, about in said.items()
        if isinstance(about["driver"], str)
    )


STATES: dict[str, tuple[str, dict[str, str]]] = {
    "none": ("no-hardware", {}),
    "hardware": ("not-on-disk", {"pci": "1"}),
    "disk": ("not-loaded", {"pci": "1", "disk": "580.95.05"}),
    "disk without hardware": ("no-hardware", {"disk": "580.95.05"}),
    "all alike": ("loaded", {"pci": "1", "disk": "580.95.05", "loaded": "580.95.05", "libraries": "580.95.05"}),
    "other on disk": ("reboot-pending", {"pci": "1", "disk": "580.105.08", "loaded": "580.95.05", "libraries": "580.95.05"}),
    "other libraries": ("version-mismatch", {"pci": "1", "disk": "580.105.08", "loaded": "580.95.05", "libraries": "580.105.08"}),
    "no libraries": ("loaded", {"pci": "1", "disk": "580.95.05", "loaded": "580.95.05"}),
    "container": ("loaded", {"loaded": "580.159.04", "libraries": "580.159.04"}),
}


@pytest.mark.parametrize(("state", "layers"), STATES.values(), ids=STATES)
def test_states_of_the_driver(tmp_path: Path, state: str, layers: dict[str, str]) -> None:
    gpu_tree.device(tmp_path, "0000:00:01.0", vendor="0x8086")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    if "pci" in layers:
        gpu_tree.device(tmp_path, ONE)
    if "disk" in layers:
        gpu_tree.on_disk(tmp_path, KERNEL, layers["disk"])
    if "loaded" in layers:
        gpu_tree.loaded(tmp_path, layers["loaded"])
    if "libraries" in layers:
        gpu_tree.libraries(tmp_path, layers["libraries"])
    found = asked(driver.FACT, tmp_path)
    assert found["state"] == state
    for key, layer in (("on_disk", "disk"), ("loaded_version", "loaded"), ("userspace", "libraries")):
        assert found[key] == layers[layer] if layer in layers else set(found[key]) == {"absent"}
    assert headline("driver", found)


def test_a_driver_that_a_bus_which_cannot_be_seen_leaves_open(tmp_path: Path) -> None:
    assert asked(driver.FACT, tmp_path)["state"]["unknown"] == "NoPciBus"


def test_each_kernel_has_its_own_module(tmp_path: Path) -> None:
    gpu_tree.on_disk(tmp_path, KERNEL, "580.95.05")
    (tmp_path / "lib/modules" / NEXT).mkdir()
    gpu_tree.on_disk(tmp_path, "6.1", "570.86.15", "updates/dkms/nvidia.ko", listed=False)
    gpu_tree.put(tmp_path / "lib/modules/6.2/extra/nvidia.ko.xz", b"\xfd7zXZ\0 what xz makes")
    gpu_tree.put(tmp_path / "lib/modules/6.3/extra/nvidia.ko", gpu_tree.module("x", section=".modifno"))
    gpu_tree.put(tmp_path / "lib/modules/6.4/extra/nvidia.ko", gpu_tree.module("390.157", "NVIDIA")[:-100])
    gpu_tree.put(tmp_path / "lib/modules/6.5/extra/nvidia.ko", gpu_tree.module("390.157", "NVIDIA"))
    gpu_tree.loaded(tmp_path, "580.95.05")
    found = asked(driver.FACT, tmp_path)
    kernels = found["kernels"]
    assert (kernels[KERNEL]["version"], kernels[KERNEL]["flavour"], kernels[KERNEL]["listed"]) == ("580.95.05", "open", True)
    assert kernels[NEXT] == {"absent": "NotOnDisk"}
    assert (kernels["6.1"]["version"], kernels["6.1"]["listed"]) == ("570.86.15", False)
    assert kernels["6.2"]["version"]["unknown"] == "CompressedModule"
    assert [kernels[name]["version"]["unknown"] for name in ("6.3", "6.4")] == ["NotReadable"] * 2
    assert kernels["6.5"]["flavour"] == "proprietary"
    assert f"no module for kernel {NEXT}" in headline("driver", found)


def test_modinfo_tells_what_a_compressed_module_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_tree.put(tmp_path / f"lib/modules/{KERNEL}/extra/nvidia.ko.xz", "compressed")
    text = "filename:       nvidia.ko.xz\nversion:        580.95.05\nlicense:        Dual MIT/GPL\n"
    gpu_tree.put(tmp_path / "bin/modinfo", f"#!/bin/sh\ncat <<X\n{text}X\n")
    (tmp_path / "bin/modinfo").chmod(0o755)
    monkeypatch.setattr(driver_fragment, "ENVIRONMENT", {"PATH": f"{tmp_path}/bin:/bin:/usr/bin"})
    module = asked(driver.MODULES, tmp_path)["kernels"][KERNEL]
    assert (module["version"], module["flavour"]) == ("580.95.05", "open")


def test_daemons_and_libraries_of_several_versions(tmp_path: Path) -> None:
    gpu_tree.loaded(tmp_path, "580.95.05")
    gpu_tree.libraries(tmp_path, "580.95.05", "usr/local/nvidia/lib64")
    gpu_tree.libraries(tmp_path, "535.1.2", "opt/lib")
    gpu_tree.put(tmp_path / "etc/ld.so.conf.d/a.conf", "# x\n/opt/lib\n")
    gpu_tree.put(tmp_path / "sys/fs/cgroup/system.slice/nvidia-persistenced.service/cgroup.procs", "811\n812\n")
    gpu_tree.put(tmp_path / "usr/lib/systemd/system/nvidia-fabricmanager.service", "[Unit]\n")
    found = asked(driver.FACT, tmp_path)
    assert found["userspace"] == {"unknown": "Several", "detail": "535.1.2, 580.95.05"}
    assert found["persistence_daemon"] == {"unit": {"absent": "NoUnit"}, "pids": [811, 812]}
    assert found["fabric_manager"]["pids"] == []
    assert found["fabric_manager"]["unit"].endswith("nvidia-fabricmanager.service")
    other = driver.stable({**found, "persistence_daemon": {**found["persistence_daemon"], "pids": [9]}})
    assert other == driver.stable(found)


def test_a_library_in_two_folders_is_one(tmp_path: Path) -> None:
    gpu_tree.libraries(tmp_path, "580.95.05", "usr/lib64")
    (tmp_path / "lib64").symlink_to("usr/lib64")
    assert [entry["name"] for entry in asked(driver.FACT, tmp_path)["libraries"]] == ["libcuda.so.1", "libnvidia-ml.so.1"]


def test_who_uses_the_gpus(tmp_path: Path) -> None:
    gpu_tree.loaded(tmp_path, "580.95.05")
    gpu_tree.put(tmp_path / "etc/passwd", f"root:x:0:0::/root:/bin/sh\nme:x:{os.getuid()}:0::/:/bin/sh\n")
    gpu_tree.process(tmp_path, 10, "/dev/null", "/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia0", "/dev/nvidia-uvm")
    gpu_tree.process(tmp_path, 11, "/dev/null", "socket:[5]")
    step = "12:devices:/slurm/uid_1000/job_77/step_0\n1:name=systemd:/system.slice/slurmd.service\n"
    gpu_tree.process(tmp_path, 12, "/dev/nvidia3", cgroup=step)
    gpu_tree.process(tmp_path, 9, "/dev/nvidia3", stat="9 (a) b) (c) R " + "1 " * 18 + "500 1\n", cgroup="0::/\n")
    found = asked(gpu_users.FACT, tmp_path)
    third, first, second = found["users"]
    assert (first["pid"], first["command"], first["minors"], first["unit"]) == (10, "python3", [0, 1], "training.service")
    assert first["argv0"] == "/opt/ai/env/train/bin/python3"
    assert "secret" not in json.dumps(found)
    assert first["started"] == 123456 / os.sysconf("SC_CLK_TCK")
    assert first["devices"] == ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]
    assert (second["slurm_job"], second["unit"]) == (77, "slurmd.service")
    assert (third["command"], third["unit"], third["started"]) == ("a) b) (c", {"absent": "NoUnit"}, 5.0)
    assert found["complete"] is True
    assert headline("gpu-users", found).startswith("a) b) (c (pid 9, none, GPU 3), python3 (pid 10, training.service, GPU 0,1)")


def test_without_a_driver_nobody_can_use_it(tmp_path: Path) -> None:
    gpu_tree.process(tmp_path, 10, "/dev/nvidia0")
    assert asked(gpu_users.FACT, tmp_path) == {"absent": "DriverNotLoaded"}


def test_who_may_not_see_open_files_does_not_say_that_there_are_none(tmp_path: Path) -> None:
    gpu_tree.loaded(tmp_path, "580.95.05")
    gpu_tree.process(tmp_path, 10, "/dev/nvidia0")
    gpu_tree.process(tmp_path, 11, "/dev/nvidia0")
    (tmp_path / "proc/10/fd").chmod(0)
    code = (
        "import json,os,sys;from reconciler.node.fragments import gpu_users;os.setgroups([]);os.setgid(65534);os.setuid(65534);"
        "print(json.dumps(gpu_users.look({'root':sys.argv[1]})))"
    )
    gpu_tree.put(tmp_path / "etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)

    def as_nobody() -> Any:
        argv = (sys.executable, "-c", code, str(tmp_path))
        done = subprocess.run(argv, check=True, capture_output=True, cwd=Path(__file__).parents[2])
        return plain(gpu_users.FACT.read((Raw(done.stdout, status=0),)))

    found = as_nobody()
    assert ([user["pid"] for user in found["users"]], found["complete"]["unknown"]) == ([11], "PermissionDenied")
    assert "there may be others (1 of 2 processes)" in headline("gpu-users", found)
    (tmp_path / "proc/11/fd").chmod(0)
    assert as_nobody() == {"unknown": "PermissionDenied", "detail": "2 of 2 processes"}


HOLD = """import os, sys
fd = os.open("/dev/nvidia5", os.O_RDWR)
print("open", flush=True)
sys.stdin.read()
"""
LOOK = """import json
from reconciler.node.fragments import gpu_users
print(json.dumps(gpu_users.look({})))
"""


def test_a_real_process_is_found(tmp_path: Path) -> None:
    """In a mount namespace of its own: a /dev with nodes of that name, and a /proc/driver that says that the driver is loaded."""
    (tmp_path / "hold.py").write_text(HOLD)
    (tmp_path / "look.py").write_text(LOOK)
    script = (
        "set -e; mount -t tmpfs none /dev; mknod /dev/nvidia5 c 1 3; mknod /dev/null c 1 3; mount -t tmpfs none /proc/driver;"
        "mkdir /proc/driver/nvidia; touch /proc/driver/nvidia/version; mkfifo $1/in; exec 3<>$1/in;"
        "$2 $1/hold.py <&3 >$1/out 3<&- & pid=$!; until grep -q open $1/out; do kill -0 $pid; done;"
        "echo $pid; $2 $1/look.py; kill $pid"
    )
    argv = ("unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable)
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.returncode == 0, done.stderr
    pid, answer = done.stdout.splitlines()
    users = plain(gpu_users.FACT.read((Raw(answer.encode(), status=0),)))["users"]
    (user,) = [user for user in users if user["pid"] == int(pid)]
    assert (user["minors"], user["user"], user["argv0"]) == ([5], "root", sys.executable)


def test_two_thousand_processes_are_seen_in_little_time(tmp_path: Path) -> None:
    gpu_tree.loaded(tmp_path, "580.95.05")
    for pid in range(1, 2001):
        (tmp_path / f"proc/{pid}/fd").mkdir(parents=True)
        for fd in range(5):
            (tmp_path / f"proc/{pid}/fd/{fd}").symlink_to("/dev/null")
    began = time.process_time()
    assert users_fragment.look({"root": str(tmp_path)})["seen"] == 2000
    assert time.process_time() - began < 0.5  # 0.05 s on an idle machine
