"""What a node's programs read beside nvidia-smi: kernel log, PCI devices, InfiniBand, the module, /proc/driver/nvidia."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from lab.gpus import boot, infiniband, kernel_log, module_file, pci, procfs
from lab.gpus.kernel_log import XIDS
from lab.gpus.state import NodeState
from reconciler.facts.formats import FORMATS, plain
from tests.gpus.test_state import STATE, set_all


def told(before: NodeState, after: NodeState) -> list[Any]:
    """Our parser's events of what the kernel says about a change."""
    text = "".join(kernel_log.dmesg(line, 1_500_000) for line in kernel_log.changes(before, after))
    return list(plain(FORMATS["kernel-log"](text))["events"]) if text else []


# setting -> kind, bus, code, severity of the events that it makes
EVENTS: dict[str, list[tuple[str, str, Any, Any]]] = {
    "gpus.5.lost=true": [("xid", "0000:b1:00", 79, None), ("gpu-lost", "0000:b1:00", None, None)],
    "gpus.1.rows.pending=true": [("xid", "0000:31:00", 63, None)],
    "gpus.1.rows.failure=true": [("xid", "0000:31:00", 64, None)],
    "gpus.0.ecc.volatile.dram_uncorrectable=1": [("xid", "0000:17:00", 48, None)],
    "gpus.0.xids=[31, 43]": [("xid", "0000:17:00", 31, None), ("xid", "0000:17:00", 43, None)],
    "gpus.2.pcie.width=8": [],  # a link that comes up narrow says nothing
    "gpus.2.temperature=90": [],
}


@pytest.mark.parametrize("setting", EVENTS)
def test_a_change_is_told_once_in_a_real_format(setting: str) -> None:
    def unless_unknown(value: Any) -> Any:
        return None if isinstance(value, dict) else value

    after = set_all(setting)
    events = told(STATE, after)
    found = [(e["kind"], e["bus"], unless_unknown(e["code"]), unless_unknown(e["severity"])) for e in events]
    assert found == EVENTS[setting]
    assert kernel_log.changes(after, after) == []
    assert kernel_log.changes(after, STATE) == []


@pytest.mark.parametrize(("field", "severity"), [("aer_corrected", "corrected"), ("aer_fatal", "fatal")])
def test_link_errors_are_told_with_their_severity(field: str, severity: str) -> None:
    events = told(STATE, set_all(f"gpus.2.pcie.{field}=1"))
    assert {event["kind"] for event in events} == {"aer"}
    assert {event["bus"] for event in events} == {"0000:4b:00"}
    assert events[0]["severity"] == severity


@pytest.mark.parametrize("number", XIDS)
def test_every_xid_is_read_with_its_number(number: int) -> None:
    text = kernel_log.dmesg(kernel_log.xid(STATE.gpus[3], number), 0)
    event = plain(FORMATS["kernel-log"](text))["events"][0]
    assert (event["kind"], event["code"], event["bus"]) == ("xid", number, "0000:65:00")


def test_an_xid_already_told_is_not_told_again() -> None:
    once = set_all("gpus.0.xids=[13]")
    twice = set_all("gpus.0.xids=[13, 13]")
    assert [event["code"] for event in told(once, twice)] == [13]


def test_a_boot_tells_the_driver_and_the_gpus_that_do_not_answer() -> None:
    lines = kernel_log.driver_loads(set_all("gpus.5.lost=true"), "580.95.05", "Mon Nov 30 07:40:22 UTC 2026")
    found = plain(FORMATS["kernel-log"]("".join(kernel_log.dmesg(line, 0) for line in lines)))
    assert (found["lost"], found["probe_failed"], found["driver"]) == (["0000:b1:00.0"], 1, "580.95.05")
    healthy = "".join(
        kernel_log.dmesg(line, 0) for line in kernel_log.driver_loads(STATE, "580.95.05", "Mon Nov 30 07:40:22 UTC 2026")
    )
    assert [event["kind"] for event in plain(FORMATS["kernel-log"](healthy))["events"]] == ["driver-loaded"]


def test_a_record_is_one_line_whatever_the_message() -> None:
    line = kernel_log.mismatch("nvidia-smi", 12, "580.95.05", "580.82.07")
    record = kernel_log.kmsg(line, 7, 1_500_000)
    assert record.startswith(b"3,7,1500000,-;NVRM: API mismatch")
    assert record.count(b"\n") == 1
    assert record.count(b"\\x0a") == 3
    assert kernel_log.dmesg(line, 1_500_000).count("<3>[    1.500000] NVRM:") == 4


def express(config: bytes) -> tuple[int, int, int, int]:
    """Generation and lanes, possible and present, as a reader follows the list of capabilities."""
    at = config[0x34]
    assert config[at] == 0x10
    can, does = struct.unpack_from("<I", config, at + 12)[0], struct.unpack_from("<H", config, at + 18)[0]
    return can & 0xF, can >> 4 & 0x3F, does & 0xF, does >> 4 & 0x3F


def test_configuration_space_and_sysfs_agree() -> None:
    files = pci.files(set_all("gpus.2.pcie.width=8", "gpus.2.pcie.gen=1"))
    assert len({name.split("/")[0] for name in files}) == 10
    config = files["0000:4b:00.0/config"]
    assert struct.unpack_from("<HH", config) == (0x10DE, 0x20B5)
    assert express(config) == (4, 16, 1, 8)
    assert files["0000:4b:00.0/current_link_width"] == b"8\n"
    assert files["0000:4b:00.0/current_link_speed"] == b"2.5 GT/s PCIe\n"
    assert files["0000:4b:00.0/class"] == b"0x030200\n"
    assert express(files["0000:17:00.0/config"]) == (4, 16, 4, 16)


def test_a_lost_gpu_reads_as_ones_and_keeps_its_folder() -> None:
    files = pci.files(set_all("gpus.5.lost=true"))
    assert set(files["0000:b1:00.0/config"]) == {0xFF}
    assert files["0000:b1:00.0/vendor"] == b"0x10de\n"
    assert "????????" in procfs.files(set_all("gpus.5.lost=true"), "580.95.05")["gpus/0000:b1:00.0/information"]


def test_drivers_are_bound_to_what_they_drive() -> None:
    assert pci.links(STATE, driver=False) == {f"{nic.bus}/driver": "../../drivers/mlx5_core" for nic in STATE.nics}
    assert pci.links(STATE, driver=True)["0000:17:00.0/driver"] == "../../drivers/nvidia"


def test_infiniband_says_what_the_state_says() -> None:
    files = infiniband.files(set_all("nics.0.state=1: DOWN", "nics.0.physical_state=3: Disabled", "nics.1.counters.link_downed=4"))
    assert files["mlx5_0/ports/1/state"] == b"1: DOWN\n"
    assert files["mlx5_0/ports/1/phys_state"] == b"3: Disabled\n"
    assert files["mlx5_1/ports/1/counters/link_downed"] == b"4\n"
    assert files["mlx5_1/ports/1/rate"] == b"200 Gb/sec (4X HDR)\n"
    assert set(infiniband.links(STATE)) == {"mlx5_0/device", "mlx5_1/device"}


@pytest.mark.parametrize("version", ["580.95.05", "570.172.08", "x" * 300])
def test_the_module_tells_its_version(version: str) -> None:
    module = module_file.build(version, "5.14.0-611.el9.x86_64")
    assert module_file.version_of(module) == version
    assert module[:4] == b"\x7fELF"


@pytest.mark.parametrize("data", [b"", b"version=", b"\0\xff", b"srcversion=1.2.3\0"])
def test_what_is_no_module_has_no_version(data: bytes) -> None:
    assert module_file.version_of(data) == ""


def test_proc_names_every_gpu() -> None:
    files = procfs.files(STATE, "580.95.05")
    assert plain(FORMATS["proc-driver-version"](files["version"]))["version"] == "580.95.05"
    for index, gpu in enumerate(STATE.gpus):
        text = files[f"gpus/{gpu.bus}/information"]
        assert f"GPU UUID: \t {gpu.uuid}\n" in text
        assert f"Device Minor: \t {index}\n" in text


@pytest.mark.timeout(20)
def test_no_file_of_the_hosts_sys_is_read(tmp_path: Path) -> None:
    """A read can act: one of zram-control/hot_add leaves a device on the host. A pipe stands in: its reader waits."""
    acts = tmp_path / "class/zram-control/hot_add"
    acts.parent.mkdir(parents=True)
    os.mkfifo(acts, 0o400)
    (tmp_path / "class/net").mkdir()
    (tmp_path / "device").mkdir()
    (tmp_path / "class/net/eth0").symlink_to("../../device")
    (tmp_path / "class/net/gone").symlink_to("../../nowhere")
    boot.copy_links(tmp_path / "class", tmp_path / "copy")
    assert (tmp_path / "copy/net/eth0").readlink() == Path("../../device")
    assert (tmp_path / "copy/zram-control/hot_add").read_bytes() == b""
