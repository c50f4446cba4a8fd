"""The demo's chapter on the GPU driver: installed, restarted and loaded; downgraded by hand, held while a process uses a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from demo.shown import heading
from lab import Lab, LabNode

if TYPE_CHECKING:
    from demo.run import Demo

VERSION, OLDER = "580.95.05", "580.82.07"  # as manifests/lab-trio has it; as somebody thinks it should be
PACKAGES = ("kmod-nvidia-open-dkms", "nvidia-kmod-common", "nvidia-modprobe", "nvidia-driver-cuda", "nvidia-driver-cuda-libs")
LIBRARIES = ("nvidia-driver-libs", "libnvidia-ml", "nvidia-persistenced")


def boots(lab: Lab) -> dict[str, str]:
    return {name: node.boot_id() for name, node in lab.nodes.items()}


def loaded(node: LabNode) -> str:
    """The version of the loaded module, as nvidia-smi says it: not asked of reconcile."""
    return node.run("nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0").stdout.strip()


def loaded_on_all(demo: Demo, before: Mapping[str, str]) -> None:
    """Each node was restarted, and runs the driver that Git says."""
    nodes = demo.lab.nodes
    again = [name for name, boot in boots(demo.lab).items() if boot == before[name]]
    demo.promises.check("every node was restarted, one after the other", not again, again)
    found = {name: loaded(node) for name, node in nodes.items()}
    demo.promises.check(f"nvidia-smi on every node: driver {VERSION}", set(found.values()) == {VERSION}, found)


def downgraded_by_hand(demo: Demo) -> None:
    """Packages of another version under a loaded module; healed once no process uses a GPU, and without a restart."""
    heading("somebody downgrades the GPU driver by hand, and a process uses a GPU")
    node = demo.lab.nodes["gpu02"]
    command = "dnf -y -q --disableplugin=versionlock install"
    print(f"[gpu02] # {command} libnvidia-ml-{OLDER} ...    (and {len(PACKAGES + LIBRARIES) - 1} more of the driver)")
    node.run(f"{command} {' '.join(f'{name}-{OLDER}' for name in PACKAGES + LIBRARIES)}")
    node.run("systemd-run --quiet --unit=train sh -c 'exec sleep infinity 3</dev/nvidia3'")
    pid = node.run("systemctl show --property=MainPID --value train").stdout.strip()
    print(f"[gpu02] # systemd-run --unit=train ...    (pid {pid} has GPU 3 open)")
    found = demo.reconcile("drift")
    demo.expect(found, 2, "drift: 1 resource, 1 held")
    for layer in (
        f"packages {OLDER}-1.el9 -> {VERSION}",
        f"module on disk {OLDER} -> {VERSION}",
        f"loaded {VERSION}",
        f"pid {pid} (unit train.service) uses GPU 3",
    ):
        demo.promises.check(f"it says: {layer}", layer in found.out, found.out)
    demo.expect(demo.reconcile("apply"), 2, "0 changes, 1 held")
    held = installed_library(node)
    demo.promises.check("nothing was changed under the process", held == f"{OLDER}-1.el9", held)
    print("[gpu02] # systemctl stop train")
    node.run("systemctl stop train")
    before = node.boot_id()
    demo.expect(demo.reconcile("apply"), 0, "1 change on 1 node")
    demo.promises.check("healed without a restart", (installed_library(node), node.boot_id()) == (f"{VERSION}-1.el9", before))
    demo.promises.check(f"nvidia-smi on gpu02: driver {VERSION}", loaded(node) == VERSION, loaded(node))


def installed_library(node: LabNode) -> str:
    return node.run("rpm -q --qf '%{VERSION}-%{RELEASE}' libnvidia-ml").stdout
