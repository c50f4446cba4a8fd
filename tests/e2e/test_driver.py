"""The GPU driver on real nodes with stand-in GPUs: packages, module on disk, loaded module, and the restart between them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from lab import Lab, LabNode
from lab.shell import wait_for
from tests.e2e import truth
from tests.e2e.site import Result, Site
from tests.e2e.truth import Nodes

OLD, NEW = "580.82.07", "580.95.05"
NEXT = "5.14.0-700.el9.x86_64"
DRIVER = "GpuDriver/nvidia"
RECORDS = 23  # that an apply of the driver to one fresh node writes at least


def site_of(lab: Lab, folder: Path, version: str) -> Site:
    return Site.small(lab, folder, driver=version)


def packages(version: str) -> str:
    names = ("kmod-nvidia-open-dkms", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-driver-libs", "libnvidia-ml")
    more = ("nvidia-persistenced", "nvidia-kmod-common", "nvidia-modprobe")
    return " ".join(f"{name}-3:{version}" for name in (*names, *more))


def loaded(node: LabNode) -> str | None:
    """By the kernel's own file, as the driver writes it."""
    words = node.run("cat /proc/driver/nvidia/version", check=False).stdout.split()
    return words[words.index("x86_64") + 1] if "x86_64" in words else None


def at(site: Site, node: LabNode, version: str) -> None:
    """The node has this version, whatever the tests before left: each begins where it needs to."""
    text = (site.repo / "site.yaml").read_text()
    site.replace(text[text.index("driver: ") :].splitlines()[0], f"driver: {version}")
    if (loaded(node), truth.rpm(node, "libnvidia-ml")) != (version, f"{version}-1.el9"):
        site.ok("apply")


def layers(result: Result) -> dict[str, tuple[Any, Any]]:
    return {f["path"]: (f["before"], f["after"]) for f in result.changes("gpu01")[DRIVER]["fields"]}


def hold(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = result.changes("gpu01")[DRIVER]["hold"]
    return found


@pytest.fixture(scope="module")
def site_and_node(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, LabNode]:
    """A node that never had a driver, and has one after one apply."""
    node = nodes.one()
    site = site_of(lab, tmp_path_factory.mktemp("driver"), OLD)
    planned = site.run("plan", "--json").json
    assert planned["cost"]["reboots"] == 1
    boot = node.boot_id()
    done = site.ok("apply")
    assert "restart of the node" in done.stderr
    assert len(site.journal()) >= RECORDS
    assert node.boot_id() != boot
    return site, node


def test_installed_restarted_and_loaded(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    at(site, node, OLD)
    assert (loaded(node), truth.rpm(node, "nvidia-driver-cuda")) == (OLD, f"{OLD}-1.el9")
    assert node.run("nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0").stdout.strip() == OLD
    assert sum(line.startswith("nvidia-driver-cuda-3:") for line in truth.locks(node)) == 1
    before = truth.fingerprint(node), node.boot_id()
    assert "0 changes" in site.ok("apply").verdict
    assert truth.moved(before[0], truth.fingerprint(node)) == []
    assert node.boot_id() == before[1]
    assert truth.lease(node)["holder"] == ""  # type: ignore[index]
    assert all(record["settled"] for record in truth.steps(node))


def test_a_process_on_a_gpu_holds_it_until_it_ends(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    at(site, node, OLD)
    site.replace(f"driver: {OLD}", f"driver: {NEW}")
    node.run("systemd-run --quiet --unit=train sh -c 'exec sleep infinity 3</dev/nvidia3'")
    pid = node.run("systemctl show --property=MainPID --value train").stdout.strip()
    found = site.run("apply")
    assert found.code == 2
    assert f"git change, held: pid {pid} (unit train.service) uses GPU 3" in found.stdout
    assert f"packages {OLD}-1.el9 -> {NEW}; module on disk {OLD} -> {NEW}; loaded {OLD} until the reboot" in found.stdout
    assert (loaded(node), truth.rpm(node, "libnvidia-ml")) == (OLD, f"{OLD}-1.el9")
    node.run("systemctl stop train")
    site.ok("apply")
    assert (loaded(node), truth.rpm(node, "libnvidia-ml")) == (NEW, f"{NEW}-1.el9")


def test_a_downgrade_by_hand_is_drift_in_every_layer_and_needs_no_restart(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    at(site, node, NEW)
    node.run(f"dnf -y -q --disableplugin=versionlock install {packages(OLD)}")
    found = site.run("drift", "--json")
    assert found.code == 2
    assert found.reasons("gpu01") == {DRIVER: "drift"}
    assert layers(found) == {
        "packages": (f"{OLD}-1.el9", f"{NEW}-1.el9"),
        "onDisk": (OLD, NEW),
        "loaded": (NEW, NEW),
        "inUse": (0, 0),
    }
    boot = node.boot_id()
    site.ok("apply")
    assert (node.boot_id(), loaded(node), truth.rpm(node, "libnvidia-ml")) == (boot, NEW, f"{NEW}-1.el9")


def test_another_kernel_that_boots_next_has_to_have_the_module(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    at(site, node, NEW)
    now = node.run("uname -r").stdout.strip()
    node.run(
        f"cd /boot/loader/entries && sed 's/{now}/{NEXT}/' *{now}.conf > m-{NEXT}.conf && cp /boot/grub2/grubenv /root/grubenv"
        f" && sed -i 's/^saved_entry=.*{now}/saved_entry=m-{NEXT}/' /boot/grub2/grubenv"
        f" && mkdir -p /lib/modules/{NEXT} && depmod {NEXT}"
    )
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert (found.code, hold(found)["code"], hold(found)["data"]["kernel"]) == (2, "NoModuleForNextKernel", NEXT)
    node.run(f"rm -r /lib/modules/{NEXT} /boot/loader/entries/m-{NEXT}.conf && mv /root/grubenv /boot/grub2/grubenv")
    assert "0 changes" in site.ok("plan").verdict


def test_a_module_that_was_not_built_is_no_reason_to_restart(site_and_node: tuple[Site, LabNode]) -> None:
    """DKMS fails, and rpm says that all is well."""
    site, node = site_and_node
    at(site, node, NEW)
    site.replace(f"driver: {NEW}", f"driver: {OLD}")
    node.run("mv /usr/src/kernels /usr/src/away")
    assert hold(site.run("plan", "--json"))["code"] == "NoKernelHeaders"
    node.run("mv /usr/src/away /usr/src/kernels; touch /etc/lab/dkms-fails")
    boot = node.boot_id()
    done = site.run("apply")
    assert done.code == 3
    assert "it was not restarted, since that would not help or would harm" in done.stdout
    assert node.boot_id() == boot
    node.run("rm /etc/lab/dkms-fails; /usr/lib/lab-gpus/lab-gpus install " + OLD)
    site.ok("apply")
    assert (loaded(node), node.boot_id() == boot) == (OLD, False)


def test_a_module_that_does_not_load_is_told_and_the_node_is_not_restarted_again(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    at(site, node, OLD)
    site.replace(f"driver: {OLD}", f"driver: {NEW}")
    node.gpus.set("module_refused=true")
    failed = site.run("apply")
    assert failed.code == 3
    assert f"a reboot did not load {NEW} (loaded: none; on disk: {NEW})" in failed.stdout
    assert loaded(node) is None
    boot = node.boot_id()
    again = site.run("apply")
    assert again.code == 2
    assert f"git change, held: a reboot did not load {NEW}" in again.stdout
    assert node.boot_id() == boot
    node.gpus.heal()
    node.reboot()
    node.wait_ready()
    assert "0 changes" in site.ok("apply").verdict
    assert loaded(node) == NEW


def test_a_controller_that_dies_while_the_node_restarts(lab: Lab, nodes: Nodes, tmp_path: Path) -> None:
    node = nodes.one()
    site, boot = site_of(lab, tmp_path, NEW), node.boot_id()
    running = site.start("apply")
    wait_for(lambda: any(r["type"] == "intent" and r["title"] == "reboot" for r in site.journal()), "the intent to restart", 60)
    wait_for(lambda: not _answers(node, boot), "the node to go down", 60)
    running.send(signal.SIGKILL)
    running.process.wait()
    node.wait_ready()
    second = node.boot_id()
    done = site.ok("apply")
    assert (loaded(node), node.boot_id()) == (NEW, second), done.text
    assert second != boot


def _answers(node: LabNode, boot: str) -> bool:
    done = node.run("cat /proc/sys/kernel/random/boot_id", check=False, timeout=5)
    return done.returncode == 0 and done.stdout.strip() == boot


@pytest.mark.deep
@pytest.mark.parametrize("after", range(1, RECORDS + 1))
def test_a_crash_after_every_record_installs_and_restarts_once(lab: Lab, nodes: Nodes, tmp_path: Path, after: int) -> None:
    node = nodes.one()
    site = site_of(lab, tmp_path, NEW)
    died = site.run("apply", RECONCILE_CRASH_AFTER=str(after))
    assert died.code == -signal.SIGKILL, died.text
    node.wait_ready()
    site.ok("apply")
    assert (loaded(node), truth.transactions(node)) == (NEW, ["Install"])
    assert len([r for r in truth.steps(node) if r["title"] == "reboot" and r["state"] == "done"]) == 1
    assert "0 changes" in site.ok("apply").verdict
