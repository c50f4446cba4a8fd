"""GPU facts of a booted node: what `reconcile observe` says, against the stand-in's state, lspci, journalctl and modinfo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import Lab
from lab.node import LabNode
from tests.e2e.site import Site
from tests.lab.test_lab_gpus import FIRST, SECOND, rebooted, repository

Look = Callable[..., dict[str, Any]]
NAME = "gpu03"


@pytest.fixture(scope="module")
def node(lab: Lab) -> Iterator[LabNode]:
    """A node whose driver is loaded; a new disk afterwards."""
    found = lab.nodes[NAME]
    found.gpus.heal()
    found.run(repository(lab))
    found.run(f"dnf -y install nvidia-open-{FIRST}")
    yield rebooted(found)
    found.reset()
    found.wait_ready()


@pytest.fixture
def look(node: LabNode, lab: Lab, tmp_path: Path) -> Iterator[Look]:
    """Values of facts by name, as one controller sees them."""
    site = Site.small(lab, tmp_path, nodes=(NAME,))
    node.gpus.heal()

    def ask(*more: str) -> dict[str, Any]:
        result = site.run("observe", "--json", *more)
        assert result.code == 0, result.text
        return {name: fact["value"] for name, fact in result.json["nodes"][NAME]["facts"].items()}

    yield ask
    node.gpus.heal()


def test_a_healthy_node_by_every_way_of_looking(node: LabNode, look: Look) -> None:
    facts = look()
    listed = [f"0000:{line.split()[0]}" for line in node.run("lspci -d 10de::0302").stdout.splitlines()]
    assert [gpu["address"] for gpu in facts["pci-gpus"]["gpus"]] == listed == facts["gpus"]["on_pci"] == facts["gpus"]["in_driver"]
    assert (facts["gpus"]["agree"], len(listed)) == (True, 8)
    assert [gpu["serial"] for gpu in facts["gpus"]["smi"]["gpus"]] == [gpu.serial for gpu in node.gpus.state().gpus]
    assert [facts["driver"][key] for key in ("state", "on_disk", "loaded_version", "userspace")] == ["loaded", FIRST, FIRST, FIRST]
    kernel = node.run("uname -r").stdout.strip()
    for name in ("driver", "driver-modules"):
        module = facts[name]["kernels"][kernel]
        assert (module["version"], module["flavour"]) == (node.run("modinfo -F version nvidia").stdout.strip(), "open")
    assert facts["topology"]["nvlinks"] == {"absent": "PairsDiffer"}
    assert all(len(gpu["links"]) == 12 for gpu in facts["nvlink"]["gpus"])
    assert facts["gpu-users"]["users"] == []


def test_faults_show_where_they_are(node: LabNode, look: Look) -> None:
    node.gpus.set("gpus.5.lost=true", "gpus.1.rows.pending=true", "gpus.2.pcie.width=8", 'gpus.4.throttle=["hw_power_brake"]')
    node.run('systemd-run --unit=train sh -c "exec 3</dev/nvidia0 4</dev/nvidia3; exec sleep 300"')
    try:
        facts = look()
    finally:
        node.run("systemctl stop train")
    lost, narrow = facts["gpus"]["on_pci"][5], facts["gpus"]["on_pci"][2]
    assert facts["gpus"]["missing"] == [lost]
    assert [gpu["address"] for gpu in facts["pci-gpus"]["gpus"] if gpu["answers"] is not True] == [lost]
    assert [gpu["address"] for gpu in facts["pci-gpus"]["gpus"] if gpu["width"] == 8] == [narrow]
    shown = facts["gpus"]["smi"]["gpus"]
    assert [gpu["remapped"]["pending"] for gpu in shown].index(True) == 1
    assert [gpu["throttle"]["hw_power_brake"] for gpu in shown].index(True) == 4
    assert facts["kernel-log"]["lost"] == [lost]
    (user,) = facts["gpu-users"]["users"]
    assert (user["unit"], user["minors"], user["command"]) == ("train.service", [0, 3], "sleep")


def test_the_kernel_log_is_read_on_and_all_of_the_boot_is_shown(node: LabNode, look: Look) -> None:
    node.gpus.set("gpus.3.xids=[31]")
    node.run("journalctl --sync")
    first = look("--fact", "kernel-log")["kernel-log"]
    node.gpus.set("gpus.3.xids=[31, 94]")
    node.run("journalctl --sync")
    second = look("--fact", "kernel-log")["kernel-log"]
    assert (first["source"], first["continued"], second["continued"], second["again"]) == ("journal", False, True, "")
    assert len(second["events"]) > len(first["events"])
    printed = node.run("journalctl -k -b -o cat | grep -c 'NVRM: Xid'").stdout.strip()
    assert sum(n for codes in second["xids"].values() for n in codes.values()) == int(printed)
    assert second["events"][: len(first["events"])] == first["events"]
    rebooted(node)
    third = look("--fact", "kernel-log")["kernel-log"]
    assert (third["continued"], third["again"], third["xids"]) == (False, "other-boot", {})


def test_a_driver_that_hangs_loses_nothing_else(node: LabNode, look: Look) -> None:
    node.gpus.set("hang_s=60.0")
    facts = look()
    assert [facts[name]["unknown"] for name in ("topology", "nvlink", "p2p")] == ["DeadlinePassed"] * 3
    assert (facts["gpus"]["smi"]["unknown"], len(facts["gpus"]["on_pci"])) == ("DeadlinePassed", 8)
    assert facts["driver"]["state"] == "loaded"


def test_layers_of_the_driver_move_apart_and_together(node: LabNode, look: Look) -> None:
    node.run(f"dnf -y install nvidia-open-{SECOND}")
    facts = look()
    layers = [facts["driver"][key] for key in ("state", "loaded_version", "on_disk", "userspace")]
    assert layers == ["version-mismatch", FIRST, SECOND, SECOND]
    assert facts["gpus"]["smi"]["unknown"] == "DriverLibraryMismatch"
    rebooted(node)
    assert [look()["driver"][key] for key in ("state", "loaded_version")] == ["loaded", SECOND]
    node.run("dnf -y remove 'kmod-nvidia*'")
    assert look()["driver"]["state"] == "loaded"
    rebooted(node)
    facts = look()
    assert facts["driver"]["state"] == "not-on-disk"
    assert (facts["gpus"]["smi"]["unknown"], facts["gpu-users"]) == ("DriverNotLoaded", {"absent": "DriverNotLoaded"})
