"""The GPU stand-in on a booted node: tools run for real, real programs read its files, the real journald its kernel log."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab import Lab
from lab.cli import main
from lab.errors import UsageError
from lab.node import LabNode
from reconciler.facts.formats import FORMATS, plain

FIRST, SECOND = "580.82.07", "580.95.05"


def repository(lab: Lab) -> str:
    """Shell text that configures NVIDIA's repository the way a site does."""
    url = f"{lab.config.url}/rpms/rhel9/x86_64"
    lines = ("[cuda-rhel9]", "name=cuda", f"baseurl={url}/", "gpgcheck=1", f"gpgkey={url}/D42D0685.pub")
    return f"printf '%s\\n' {' '.join(lines)} > /etc/yum.repos.d/cuda-rhel9.repo"


def rebooted(node: LabNode) -> LabNode:
    node.reboot()
    node.wait_ready()
    return node


@pytest.fixture(scope="module")
def driven(lab: Lab) -> Iterator[LabNode]:
    """A node whose driver is loaded."""
    node = lab.nodes["gpu02"]
    node.run(repository(lab))
    node.run(f"dnf -y install nvidia-open-{FIRST}")
    yield rebooted(node)
    node.reset()
    node.wait_ready()


@pytest.fixture
def node(driven: LabNode) -> Iterator[LabNode]:
    """The same, all well before and after."""
    driven.gpus.heal()
    yield driven
    driven.gpus.heal()


def parsed(node: LabNode, form: str, command: str) -> Any:
    return plain(FORMATS[form](node.run(command, check=False).stdout))


def kernel_lines(node: LabNode, after: str = "") -> list[dict[str, Any]]:
    """Records of this boot's kernel log, after a cursor."""
    since = f"--after-cursor='{after}'" if after else ""
    return [json.loads(line) for line in node.run(f"journalctl --sync; journalctl -k -b -o json {since}").stdout.splitlines()]


def test_forms_of_one_node_agree(node: LabNode) -> None:
    xml, words = parsed(node, "nvsmi-xml", "nvidia-smi -q -x"), parsed(node, "nvsmi-q", "nvidia-smi -q")
    assert xml["gpus"] == words["gpus"]
    uuids = [gpu.uuid for gpu in node.gpus.state().gpus]
    assert (
        [gpu["uuid"] for gpu in xml["gpus"]] == [gpu["uuid"] for gpu in parsed(node, "nvsmi-L", "nvidia-smi -L")["gpus"]] == uuids
    )
    assert xml["driver"] == FIRST == parsed(node, "nvsmi-table", "nvidia-smi")["driver"]
    asked = node.run("nvidia-smi --query-gpu=uuid,driver_version --format=csv,noheader", user="ops").stdout.splitlines()
    assert asked == [f"{uuid}, {FIRST}" for uuid in uuids]
    assert parsed(node, "topo", "nvidia-smi topo -m")["nic_names"] == {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}


def test_two_nodes_have_no_gpu_in_common(lab: Lab) -> None:
    serials = [gpu.serial for name in ("gpu01", "gpu03", "deb01") for gpu in lab.nodes[name].gpus.state().gpus]
    assert len(set(serials)) == len(serials) == 24


def test_real_lspci_reads_the_link_and_counts_the_gpus(node: LabNode) -> None:
    node.gpus.set("gpus.2.pcie.width=8", "gpus.5.lost=true")
    found = plain(FORMATS["lspci"](node.run("lspci -D -nn -d 10de:").stdout))
    assert len(found["devices"]) == 8
    assert "LnkSta:\tSpeed 16GT/s, Width x8 (downgraded)" in node.run("lspci -vv -s 4b:00.0").stdout
    assert "(rev ff)" in node.run("lspci -s b1:00.0").stdout
    assert node.run("cat /sys/bus/pci/devices/0000:4b:00.0/current_link_width").stdout == "8\n"
    assert node.run("grep -l 0x10de /sys/bus/pci/devices/*/vendor | wc -l").stdout == "8\n"
    assert node.run("basename $(readlink /sys/bus/pci/devices/0000:17:00.0/driver)").stdout == "nvidia\n"


def test_infiniband_is_in_sysfs_with_its_pci_device(node: LabNode) -> None:
    node.gpus.set("nics.1.state=1: DOWN")
    port = "/sys/class/infiniband/mlx5_1/ports/1"
    assert node.run(f"cat {port}/state {port}/counters/link_downed").stdout == "1: DOWN\n0\n"
    assert node.run("cat /sys/class/infiniband/mlx5_0/device/vendor").stdout == "0x15b3\n"


def test_who_holds_a_device_file_is_seen_and_keeps_the_gpu_from_a_reset(node: LabNode) -> None:
    node.run("systemd-run --unit=holder --property=StandardInput=file:/dev/nvidia3 sleep 600")
    pid = node.run("systemctl show -P MainPID holder").stdout.strip()
    assert node.run(f"readlink /proc/{pid}/fd/0").stdout == "/dev/nvidia3\n"
    apps = node.run("nvidia-smi --query-compute-apps=pid,name,gpu_uuid --format=csv,noheader").stdout
    assert apps == f"{pid}, /usr/bin/sleep, {node.gpus.state().gpus[3].uuid}\n"
    assert parsed(node, "nvsmi-table", "nvidia-smi")["processes"][0]["pid"] == int(pid)
    assert node.run("nvidia-smi --gpu-reset -i 3", check=False).returncode == 255
    assert node.run("nvidia-smi --gpu-reset -i 2").stdout == "GPU 00000000:4B:00.0 was successfully reset.\n"
    node.run("systemctl stop holder")
    assert node.run("nvidia-smi --gpu-reset -i 3").returncode == 0


def test_a_fault_is_in_the_real_kernel_journal_once(node: LabNode) -> None:
    cursor = kernel_lines(node)[-1]["__CURSOR"]
    node.gpus.set("gpus.5.lost=true", "gpus.1.rows.pending=true")
    node.gpus.set("gpus.0.temperature=60")
    records = kernel_lines(node, cursor)
    assert {(r["_TRANSPORT"], r["SYSLOG_IDENTIFIER"], r["PRIORITY"]) for r in records} == {("kernel", "kernel", "3")}
    events = plain(FORMATS["kernel-log"](node.run(f"journalctl -k -b --after-cursor='{cursor}'").stdout))["events"]
    assert sorted(event["code"] for event in events if event["kind"] == "xid") == [63, 79]
    assert "GPU has fallen off the bus" in node.run("dmesg | tail -1").stdout
    assert node.run("nvidia-smi", check=False).returncode == 15


def test_many_records_at_once_stay_apart(node: LabNode) -> None:
    cursor = kernel_lines(node)[-1]["__CURSOR"]
    numbers = [13, 31, 43, 45] * 50
    node.gpus.set(f"gpus.0.xids={json.dumps(numbers)}")
    events = plain(FORMATS["kernel-log"](node.run(f"journalctl --sync; journalctl -k --after-cursor='{cursor}'").stdout))["events"]
    assert [event["code"] for event in events] == numbers


def test_a_pending_remap_is_done_by_a_reset(node: LabNode) -> None:
    node.gpus.set("gpus.1.rows.pending=true", "gpus.1.rows.uncorrectable=1")
    query = (
        "nvidia-smi -i 1 --query-gpu=remapped_rows.pending,remapped_rows.uncorrectable,gpu_recovery_action --format=csv,noheader"
    )
    assert node.run(query).stdout == "Yes, 1, Drain and Reset\n"
    node.run("nvidia-smi -r -i 1")
    assert node.run(query).stdout == "No, 1, None\n"
    assert not node.gpus.state().gpus[1].rows.pending


def test_a_mistake_in_a_setting_changes_nothing(node: LabNode) -> None:
    before = node.gpus.state()
    with pytest.raises(UsageError, match="did you mean lost"):
        node.gpus.set("gpus.0.temperature=99", "gpus.5.lsot=true")
    assert node.gpus.state() == before


def test_the_command_line_shows_and_changes_a_state(node: LabNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", node.name, "--set", "gpus.2.pcie.width=8", "--set", "gpus.5.lost=true"]) == 0
    capsys.readouterr()
    assert main(["gpu", node.name]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["gpus"][2]["pcie"]["width"], shown["gpus"][5]["lost"]) == (8, True)
    assert main(["gpu", node.name, "--set", "gpus.5.lsot=true"]) == 2
    assert "did you mean lost" in capsys.readouterr().err
    assert main(["gpu", node.name, "--heal"]) == 0
    assert not node.gpus.state().gpus[5].lost
    assert main(["status"]) == 0
    assert "GPUs and network cards of the nodes are stand-ins" in capsys.readouterr().out


def test_an_answer_costs_little(node: LabNode) -> None:
    times = [node.run("bash -c 'TIMEFORMAT=%U+%S; time nvidia-smi -q -x > /dev/null'").stderr for _ in range(3)]
    assert min(sum(map(float, text.split("+"))) for text in times) < 0.1


def test_nvidia_smi_can_hang(node: LabNode) -> None:
    node.gpus.set("hang_s=60.0")
    assert node.run("timeout 1 nvidia-smi", check=False).returncode == 124


LAYERS = "modinfo -F version -k $(uname -r) nvidia; head -1 /proc/driver/nvidia/version; nvidia-smi -L | head -1"


def test_disk_library_and_loaded_module_are_apart_until_a_reboot(driven: LabNode) -> None:
    driven.gpus.heal()
    driven.run(f"dnf -y install nvidia-open-{SECOND}")
    on_disk, loaded, said = driven.run(LAYERS).stdout.splitlines()
    assert on_disk == SECOND
    assert FIRST in loaded
    assert said == "Failed to initialize NVML: Driver/library version mismatch"
    assert driven.run("nvidia-smi", check=False).returncode == 18
    assert "API mismatch" in kernel_lines(driven)[-1]["MESSAGE"]
    on_disk, loaded, said = rebooted(driven).run(LAYERS).stdout.splitlines()
    assert on_disk == SECOND
    assert SECOND in loaded
    assert said.startswith("GPU 0: NVIDIA A100 80GB PCIe")
    driven.run("dnf -y remove kmod-nvidia-open-dkms")
    assert SECOND in driven.run("cat /proc/driver/nvidia/version").stdout
    assert driven.run("modinfo nvidia", check=False).returncode == 1
    assert driven.run("which nvidia-smi", check=False).returncode == 1
    assert rebooted(driven).run("test -e /proc/driver/nvidia || test -e /dev/nvidia0", check=False).returncode == 1


def test_a_debian_node_has_the_same_layers(lab: Lab) -> None:
    node = lab.nodes["deb01"]
    node.run(f"echo 'deb [trusted=yes] {lab.config.url}/debs/nvidia ./' > /etc/apt/sources.list.d/nvidia.list; apt-get -q update")
    node.run("apt-get -y install nvidia-open")
    assert node.run("nvidia-smi", check=False).returncode == 9
    assert rebooted(node).run("nvidia-smi --query-gpu=driver_version --format=csv,noheader").stdout.split() == [SECOND] * 8
    assert node.run("modinfo -F filename nvidia").stdout == "/lib/modules/6.1.0-40-amd64/updates/dkms/nvidia.ko\n"
    node.run("apt-get -y purge nvidia-open nvidia-driver-cuda nvidia-kernel-open-dkms")
    assert node.run("which nvidia-smi || modinfo nvidia", check=False).returncode == 1
    node.reset()
    node.wait_ready()
