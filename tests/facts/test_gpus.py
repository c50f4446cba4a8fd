"""What nvidia-smi of a running node says, by a stand-in for the program and the recorded outputs of an H200 host."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import gpu_links, gpus
from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Ask, Raw
from reconciler.node.fragments import nvsmi as fragment
from reconciler.node.fragments import pci as pci_fragment
from reconciler.render.headlines import headline
from tests.cases import DATA
from tests.nodes import gpu_tree

H200, CORPUS = DATA / "h200", DATA / "corpus"
AT = "0000:00:06.0"  # the H200 of the recording
Smi = Callable[..., None]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """`smi(out, status, err)`: what nvidia-smi prints; each call adds a line with its arguments to `calls`."""
    monkeypatch.setattr(fragment, "ENVIRONMENT", {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})

    def says(out: str, status: int = 0, err: str = "") -> None:
        gpu_tree.put(tmp_path / "out", out)
        gpu_tree.put(tmp_path / "err", err)
        text = f"#!/bin/sh\necho $* >> {tmp_path}/calls\ncat {tmp_path}/out\ncat {tmp_path}/err >&2\nexit {status}\n"
        gpu_tree.put(tmp_path / "bin/nvidia-smi", text)
        (tmp_path / "bin/nvidia-smi").chmod(0o755)

    return says


def asked(fact: LiveFact, root: Path, **other: Any) -> Any:
    raws = []
    for part in fact.parts(About()):
        assert isinstance(part, Ask)
        look = {"nvsmi": fragment.look, "pci": pci_fragment.look}[part.fragment]
        raws.append(Raw(json.dumps(look({**json.loads(part.arguments), "root": str(root), **other})).encode(), status=0))
    return plain(fact.read(tuple(raws)))


def node(root: Path, *addresses: str) -> None:
    gpu_tree.loaded(root, "580.159.04", *addresses)
    for address in addresses:
        gpu_tree.device(root, address, ident="0x2335")


def test_the_recorded_h200(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    smi((H200 / "nvidia-smi-q.xml").read_text())
    found = asked(gpus.FACT, tmp_path)
    assert (found["agree"], found["missing"], found["on_pci"], found["in_driver"], found["status"]) == (True, [], [AT], [AT], 0)
    assert headline("gpus", found).startswith("1 x NVIDIA H200, driver 580.159.04")
    stable = json.dumps(gpus.stable(found))
    assert "GPU-00000000-0000-4000-8000-000000000001" in stable
    for word in ("temperature", "utilization", "clock", "draw", "used_mib", '"generation"', "replays"):
        assert word not in stable
    smi((H200 / "nvidia-smi-topo.txt").read_text())
    assert headline("topology", asked(gpu_links.TOPOLOGY, tmp_path)) == "1 GPU: no pairs"
    smi((H200 / "nvidia-smi-topo-p2p.txt").read_text())
    assert asked(gpu_links.P2P, tmp_path)["read"]["gpus"] == ["GPU0"]
    assert (tmp_path / "calls").read_text().splitlines() == ["-q -x", "topo -m", "topo -p2p r", "topo -p2p w"]


CHANGES = [
    ("<remapped_row_pending>No", "<remapped_row_pending>Yes", "row remap pending"),
    ("<remapped_row_failure>No", "<remapped_row_failure>Yes", "row remap failed"),
    ("<persistence_mode>Enabled", "<persistence_mode>Disabled", "persistence off"),
    ("<pending_ecc>Enabled", "<pending_ecc>Disabled", "ECC changes at the next reset"),
    ("<current_mig>Disabled", "<current_mig>Enabled", "MIG on; MIG"),
    ("<current_link_width>16x", "<current_link_width>8x", "PCIe narrower than it could be"),
    ("hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active", "throttled"),
    ("<gpu_recovery_action>None", "<gpu_recovery_action>Reboot", "a recovery action is asked for"),
]


@pytest.mark.parametrize(("good", "bad", "words"), CHANGES)
def test_a_deviation_is_told_first_and_is_state(tmp_path: Path, smi: Smi, good: str, bad: str, words: str) -> None:
    node(tmp_path, AT)
    text = (H200 / "nvidia-smi-q.xml").read_text()
    text = text.replace("<persistence_mode>Disabled", "<persistence_mode>Enabled")
    assert good in text
    smi(text)
    before = asked(gpus.FACT, tmp_path)
    assert words.split(";", maxsplit=1)[0] not in headline("gpus", before)
    smi(text.replace(good, bad))
    after = asked(gpus.FACT, tmp_path)
    assert all(word.strip() in headline("gpus", after) for word in words.split(";"))
    assert (gpus.stable(after) == gpus.stable(before)) == (words == "throttled")


FAILURES = {
    "no-devices": ("No devices were found\n", 6, "", {"absent": "NoDevices"}),
    "mismatch": ("Failed to initialize NVML: Driver/library version mismatch\n", 18, "", "DriverLibraryMismatch"),
    "not-loaded": ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9, "", "DriverNotLoaded"),
    "lost": ("Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.  Reboot the system\n", 15, "", "GpuLost"),
    "said to stderr": ("", 15, "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.\n", "GpuLost"),
    "by its status alone": ("", 14, "", "InforomCorrupted"),
    "by nothing": ("", 77, "it broke", "CommandFailed"),
    "killed": ("", -11, "", "CommandFailed"),
    "not a document": ("hello\n", 0, "", "UnreadableText"),
}  # fmt: skip


@pytest.mark.parametrize(("out", "status", "err", "why"), FAILURES.values(), ids=FAILURES)
def test_states_of_failure_stay_apart_and_leave_the_counts(
    tmp_path: Path, smi: Smi, out: str, status: int, err: str, why: Any
) -> None:
    node(tmp_path, "0000:9b:00.0")
    smi(out, status if status >= 0 else 0, err)
    if status < 0:
        (tmp_path / "bin/nvidia-smi").write_text("#!/bin/sh\nkill -SEGV $$\n")
    found = asked(gpus.FACT, tmp_path)
    assert found["smi"] == why if isinstance(why, dict) else found["smi"]["unknown"] == why
    assert (found["on_pci"], found["in_driver"]) == (["0000:9b:00.0"], ["0000:9b:00.0"])
    assert (found["agree"] is False) == (why == {"absent": "NoDevices"})
    assert headline("gpus", found).startswith("nvidia-smi: ")
    links = asked(gpu_links.TOPOLOGY, tmp_path)
    assert links == why if isinstance(why, dict) else links["unknown"] == {"UnreadableText": "NoMatrix"}.get(why, why)


def test_one_that_hangs_is_left_at_its_deadline(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    smi("")
    (tmp_path / "bin/nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    began = time.monotonic()
    found = asked(gpus.FACT, tmp_path, seconds=0.3)
    assert time.monotonic() - began < 5
    assert (found["smi"]["unknown"], found["on_pci"], found["agree"]["unknown"]) == ("DeadlinePassed", [AT], "DeadlinePassed")
    assert headline("gpus", found) == "nvidia-smi: it did not answer in time; 1 GPU on the PCI bus"


def test_nvidia_smi_is_not_called_where_it_would_load_the_driver(tmp_path: Path, smi: Smi) -> None:
    gpu_tree.device(tmp_path, AT)
    smi("hello")
    assert asked(gpus.FACT, tmp_path)["smi"]["unknown"] == "DriverNotLoaded"
    assert asked(gpu_links.NVLINK, tmp_path)["unknown"] == "DriverNotLoaded"
    assert not (tmp_path / "calls").exists()


def test_no_hardware_and_no_driver_is_no_device(tmp_path: Path, smi: Smi) -> None:
    gpu_tree.device(tmp_path, "0000:01:00.0", vendor="0x1a03")
    for fact in (gpus.FACT, gpu_links.TOPOLOGY, gpu_links.NVLINK, gpu_links.P2P):
        assert asked(fact, tmp_path) == {"absent": "NoDevices"}


def test_a_loaded_driver_without_nvidia_smi(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    assert asked(gpus.FACT, tmp_path)["smi"] == {"absent": "NotInstalled"}
    assert asked(gpu_links.P2P, tmp_path) == {"absent": "NotInstalled"}


def test_a_gpu_that_nvidia_smi_does_not_show_is_named(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT, "0000:9b:00.0")
    smi((H200 / "nvidia-smi-q.xml").read_text())
    found = asked(gpus.FACT, tmp_path)
    assert (found["missing"], found["agree"]) == (["0000:9b:00.0"], False)
    assert headline("gpus", found).endswith("; not shown by nvidia-smi: 0000:9b:00.0")


def test_a_gpu_that_is_counted_and_left_out_is_named_and_a_cut_document_leaves_it_open(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT, "0000:9b:00.0")
    text = (H200 / "nvidia-smi-q.xml").read_text().replace("<attached_gpus>1<", "<attached_gpus>2<")
    smi("Unable to determine the device handle for GPU1: 0000:9B:00.0: GPU is lost. Reboot the system\n" + text, 15)
    found = asked(gpus.FACT, tmp_path)
    assert (found["missing"], found["agree"], found["smi"]["complete"]) == (["0000:9b:00.0"], False, False)
    smi(text[: text.index("<ecc_mode>")])
    found = asked(gpus.FACT, tmp_path)
    assert (found["missing"]["unknown"], found["agree"]["unknown"]) == ("Truncated", "Truncated")
    assert "the answer is not whole" in headline("gpus", found)


def test_a_document_with_a_failing_status_keeps_its_gpus(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    smi((H200 / "nvidia-smi-q.xml").read_text() + "WARNING: infoROM is corrupted at gpu 0000:00:06.0\n", 14)
    found = asked(gpus.FACT, tmp_path)
    assert (len(found["smi"]["gpus"]), found["status"], found["smi"]["faults"][0]["code"]) == (1, 14, "InforomCorrupted")


LINES = "GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-00000000-0000-4000-8000-000000000001)\n"
INACTIVE = "\t Unable to retrieve NVLink information as all links are inActive\n"


def test_links_that_are_not_there_and_links_that_are_down(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    for text in ("", "\n", LINES, LINES * 8):
        smi(text)
        assert asked(gpu_links.NVLINK, tmp_path) == {"absent": "NoLinks"}, text
    smi(LINES + "\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n")
    found = asked(gpu_links.NVLINK, tmp_path)
    assert headline("nvlink", found) == "links a GPU: 1 x 2; 1 link down"
    smi((LINES + INACTIVE) * 2)
    assert headline("nvlink", asked(gpu_links.NVLINK, tmp_path)) == "links a GPU: 2 x none; all links inactive on 2 of 2 GPUs"
    smi((CORPUS / "nvsmi-nvlink/a100-status.txt").read_text())
    assert headline("nvlink", asked(gpu_links.NVLINK, tmp_path)) == "links a GPU: 8 x 12"


def test_topologies_of_the_corpus_in_one_line(tmp_path: Path, smi: Smi) -> None:
    node(tmp_path, AT)
    for name, words in (("a100-8-nv12-mdspaced", "8 GPUs: 28 x NV12"), ("6gpu-pix-pxb-sys", "6 GPUs: ")):
        smi((CORPUS / f"topo/{name}.txt").read_text())
        assert headline("topology", asked(gpu_links.TOPOLOGY, tmp_path)).startswith(words)


def test_an_answer_that_is_too_large(tmp_path: Path, smi: Smi, monkeypatch: pytest.MonkeyPatch) -> None:
    node(tmp_path, AT)
    monkeypatch.setattr(fragment, "LIMIT", 1000)
    smi("x" * 2000)
    assert asked(gpus.FACT, tmp_path)["smi"]["unknown"] == "OutputTooLarge"
