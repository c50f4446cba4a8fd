"""nvidia-smi: five outputs of one H200 node agree, states of failure stay apart, and a cut or a bad cell loses only itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.facts.formats import FORMATS, plain
from reconciler.model.fact import Absent, Unknown

DATA = Path(__file__).parent.parent / "data"
H200 = DATA / "h200"
CORPUS = DATA / "corpus"


def read(name: str, path: Path) -> Any:
    return plain(FORMATS[name](path.read_text()))


def h200() -> dict[str, Any]:
    return {
        "xml": read("nvsmi-xml", H200 / "nvidia-smi-q.xml"),
        "q": read("nvsmi-q", H200 / "nvidia-smi-q.txt"),
        "csv": read("nvsmi-csv", H200 / "nvidia-smi-query.csv"),
        "table": read("nvsmi-table", H200 / "nvidia-smi.txt"),
        "list": read("nvsmi-L", H200 / "nvidia-smi-L.txt"),
    }


def test_the_outputs_of_one_node_agree() -> None:
    found = h200()
    xml, words = found["xml"]["gpus"][0], found["q"]["gpus"][0]
    # the momentary draw changed between the two commands
    assert {key: xml[key] for key in xml if key != "power"} == {key: words[key] for key in words if key != "power"}
    assert [found[name]["complete"] for name in ("xml", "q", "table")] == [True, True, True]
    cells, box, listed = found["csv"]["rows"][0]["cells"], found["table"]["gpus"][0], found["list"]["gpus"][0]
    assert xml["uuid"] == cells["uuid"] == listed["uuid"]
    assert xml["name"] == cells["name"] == listed["name"] == box["name"] == "NVIDIA H200"
    assert xml["bus_id"] == cells["pci.bus_id"] == box["bus_id"] == "00000000:00:06.0"
    assert cells["memory.total [MiB]"] == f"{xml['memory']['total_mib']} MiB" == f"{box['memory_total_mib']} MiB"
    assert found["xml"]["driver"] == found["q"]["driver"] == found["table"]["driver"] == cells["driver_version"] == "580.159.04"
    assert xml["remapped"]["pending"] is False
    assert xml["errors"]["sram_uncorrectable_aggregate"] == 0


STATES = {
    "No devices were found\n": Absent("NoDevices"),
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.\n": "DriverNotLoaded",
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n": "DriverLibraryMismatch",
    "Unable to determine the device handle for GPU0: 0000:24:00.0: GPU is lost.  Reboot the system\n": "GpuLost",
    "Failed to initialize NVML: Unknown Error\n": "NvmlUnknownError",
    "": "Empty",
}


@pytest.mark.parametrize("name", ["nvsmi-xml", "nvsmi-q", "nvsmi-csv", "nvsmi-table", "nvsmi-L", "nvsmi-nvlink"])
@pytest.mark.parametrize("said", STATES)
def test_states_of_failure_stay_apart(name: str, said: str) -> None:
    found, expected = FORMATS[name](said), STATES[said]
    assert found == expected if isinstance(expected, Absent) else isinstance(found, Unknown) and found.why == expected


def test_a_mismatch_names_the_library() -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n"
    assert plain(FORMATS["nvsmi-error"](said))["library"] == "580.95"


def two_gpus() -> str:
    text = (H200 / "nvidia-smi-q.xml").read_text()
    head, _, rest = text.partition("<gpu id=")
    gpu, _, end = rest.partition("</gpu>")
    second = gpu.replace("00:06.0", "00:07.0")
    return head.replace(">1</attached_gpus", ">2</attached_gpus") + f"<gpu id={gpu}</gpu><gpu id={second}</gpu>" + end


def test_a_damaged_gpu_does_not_lose_the_next() -> None:
    text = two_gpus().replace("<product_name>NVIDIA H200</product_name>", "<product_name>NVIDIA <H200</product_name>", 1)
    found = plain(FORMATS["nvsmi-xml"](text))
    first, second = found["gpus"]
    assert first["name"] == {"unknown": "Missing", "detail": ""}
    assert first["bus_id"] == "00000000:00:06.0"
    assert second["name"] == "NVIDIA H200"
    assert (found["well_formed"], found["complete"]) == (False, False)


@pytest.mark.parametrize("name", ["nvidia-smi-q.xml", "nvidia-smi-q.txt", "nvidia-smi.txt"])
def test_no_cut_looks_complete_or_changes_a_value(name: str) -> None:
    parser = {"nvidia-smi-q.xml": "nvsmi-xml", "nvidia-smi-q.txt": "nvsmi-q", "nvidia-smi.txt": "nvsmi-table"}[name]
    text = (H200 / name).read_text()
    whole = plain(FORMATS[parser](text))
    ending = {"nvsmi-xml": "</nvidia_smi_log>", "nvsmi-q": "    Processes ", "nvsmi-table": "+---"}[parser]
    for length in range(0, text.rindex(ending), 7):
        found = plain(FORMATS[parser](text[:length]))
        if "gpus" in found:
            assert not found["complete"]
            assert all(same_or_open(gpu, full) for gpu, full in zip(found["gpus"], whole["gpus"], strict=False)), length


def same_or_open(found: Any, whole: Any) -> bool:
    """Whether every value is the one of the whole text, or says that it is not known; words may be cut with the text."""
    if isinstance(found, dict) and {"absent", "unknown"} & set(found):
        return True
    if isinstance(found, dict) and isinstance(whole, dict):
        return all(same_or_open(found[key], whole.get(key)) for key in found)
    return isinstance(found, str) or bool(found == whole)


def test_a_number_that_lost_digits_is_not_taken() -> None:
    text = (CORPUS / "nvsmi-q" / "titanv-560.txt").read_text()
    end = text.index("100607")
    (gpu,) = plain(FORMATS["nvsmi-q"](text[: end + 4]))["gpus"]
    assert gpu["processes"][0]["pid"] == {"unknown": "Missing", "detail": ""}


def test_entities_are_refused() -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><nvidia_smi_log><gpu id="&b;"/></nvidia_smi_log>'
    assert FORMATS["nvsmi-xml"](bomb) == Unknown("EntitiesRefused")


def test_a_bad_cell_is_unknown_in_its_place() -> None:
    head = "index, name, memory.used [MiB], power.draw [W]\n"
    text = head + "0, NVIDIA A100, [Unknown Error], 61.2 W\n1, NVIDIA A100\n2, NVIDIA A100, 3 MiB, [N/A]\n"
    first, short, last = plain(FORMATS["nvsmi-csv"](text))["rows"]
    assert first["cells"]["memory.used [MiB]"] == {"unknown": "UnknownError", "detail": "[Unknown Error]"}
    assert first["cells"]["power.draw [W]"] == "61.2 W"
    assert short["unknown"] == "ColumnCount"
    assert last["cells"]["power.draw [W]"] == {"absent": "NotAvailable"}


def test_a_link_that_is_down_is_named() -> None:
    text = "GPU 0: NVIDIA A100 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n\t Link 2: 2\ufffd GB/s\n"
    (gpu,) = plain(FORMATS["nvsmi-nvlink"](text))["gpus"]
    assert gpu["links"][1] == {"index": 1, "speed_gb_s": {"absent": "Inactive"}}
    assert gpu["links"][2]["speed_gb_s"]["unknown"] == "UnreadableText"
    assert gpu["inactive"] == [1]
