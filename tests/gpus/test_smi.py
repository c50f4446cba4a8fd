"""nvidia-smi of the stand-in: every field, every fault, every refusal; and what our own parsers make of it."""

import re
from typing import Any

import pytest

from lab.gpus import smi
from lab.gpus.codec import assign, parse_setting
from lab.gpus.query_fields import ALIASES, FIELDS
from reconciler.facts.formats import FORMATS, plain
from tests.gpus.host import RECORDED, node
from tests.gpus.test_state import set_all

CORPUS = RECORDED.parent / "corpus"


def parsed(form: str, *argv: str, settings: tuple[str, ...] = ()) -> Any:
    """Our parser's value of what the tool says on a node with these settings."""
    return plain(FORMATS[form](smi.answer(list(argv), node(set_all(*settings))).out))


def parsed_text(form: str, text: str) -> Any:
    return plain(FORMATS[form](text))


def documented_fields() -> list[str]:
    """Every name and alias in the tool's own help."""
    text = (RECORDED / "nvidia-smi-help-query.txt").read_text()
    lines = [line for line in text.splitlines() if re.fullmatch(r'"[\w.]+"( or "[\w.]+")*', line)]
    return [name for line in lines for name in re.findall(r'"([\w.]+)"', line)]


def test_no_field_is_invented_or_left_out() -> None:
    assert {*FIELDS, *ALIASES} == set(documented_fields())


@pytest.mark.parametrize("name", documented_fields())
def test_every_documented_field_is_answered(name: str) -> None:
    said = smi.answer([f"--query-gpu={name}", "--format=csv"], node())
    lines = said.out.splitlines()
    assert said.status == 0
    assert len(lines) == 9
    unit = re.fullmatch(r".*\[(\w+|%)\]", lines[0])
    for cell in lines[1:]:
        assert cell.strip()
        assert not unit or cell.endswith((f" {unit[1]}", "[N/A]")), (lines[0], cell)
    bare = smi.answer([f"--query-gpu={name}", "--format=csv,noheader,nounits"], node()).out.splitlines()
    assert bare[0] == (lines[1].rpartition(" ")[0] if unit and lines[1] != "[N/A]" else lines[1])


# answered otherwise by the recorded host, because it is another board or driver
_OTHER = re.compile(
    r"timestamp|driver|name|serial|uuid|pci\.|pcie|vbios|inforom|memory\.|temperature|power\.|clocks|histogram|fabric|platform"
)


def test_units_and_answers_are_those_of_a_recorded_wide_query() -> None:
    header, values = (line.split(", ") for line in (CORPUS / "nvsmi-csv" / "h100-590-wide.txt").read_text().splitlines())
    recorded = {column.split(" ")[0]: (column, value) for column, value in zip(header, values, strict=True)}
    names = [name for name in recorded if name in FIELDS]
    assert len(names) == len(recorded) - 1  # without edpp_multiplier, which 590 added
    said = smi.answer([f"--query-gpu={','.join(names)}", "--format=csv", "-i", "0"], node()).out.splitlines()
    for name, column, value in zip(names, said[0].split(", "), said[1].split(", "), strict=True):
        assert column == recorded[name][0]
        if name not in ("count", "compute_cap") and not _OTHER.search(name):
            assert value == recorded[name][1], name


@pytest.mark.parametrize(("names", "wrong"), [("uuid,nonsense,name", "nonsense"), ("cuda_version", "cuda_version")])
def test_an_unknown_field_is_refused_as_the_tool_does(names: str, wrong: str) -> None:
    said = smi.answer([f"--query-gpu={names}", "--format=csv"], node())
    assert (said.out, said.status) == (f'Field "{wrong}" is not a valid field to query.\n\n', 2)


@pytest.mark.parametrize("argv", [["--nonsense"], ["nonsense"], ["--query-gpu=uuid"], ["--query-gpu=uuid", "--format=xml"],
                                  ["topo"], ["topo", "-p2p", "z"], ["nvlink"], ["-q", "-d", "NONSENSE"], ["-i"]])  # fmt: skip
def test_a_line_that_makes_no_sense_is_refused(argv: list[str]) -> None:
    assert smi.answer(argv, node()).status == 2


FORMS = [("nvsmi-xml", ["-q", "-x"]), ("nvsmi-q", ["-q"]), ("nvsmi-table", []), ("nvsmi-L", ["-L"])]


@pytest.mark.parametrize(("form", "argv"), FORMS)
def test_a_healthy_node_reads_as_eight_gpus_without_fault(form: str, argv: list[str]) -> None:
    found = parsed(form, *argv)
    assert len(found["gpus"]) == 8
    assert found["faults"] == []
    assert found.get("complete", True) is True
    assert {gpu["name"] for gpu in found["gpus"]} == {"NVIDIA A100 80GB PCIe"}


def test_the_two_full_reports_of_a_node_agree() -> None:
    xml, words = parsed("nvsmi-xml", "-q", "-x")["gpus"], parsed("nvsmi-q", "-q")["gpus"]
    assert xml == words
    assert len({gpu["uuid"] for gpu in xml}) == 8


@pytest.mark.parametrize(("form", "argv"), [*FORMS, ("nvsmi-csv", ["--query-gpu=index,uuid", "--format=csv"])])
def test_a_lost_gpu_is_told_in_every_form_and_hides_no_other(form: str, argv: list[str]) -> None:
    said = smi.answer(argv, node(set_all("gpus.5.lost=true")))
    found = plain(FORMATS[form](said.out))
    assert said.status == 15
    assert [(fault["code"], fault["index"], fault["exit_status"]) for fault in found["faults"]] == [("GpuLost", 5, 15)]
    assert len(found["rows"] if form == "nvsmi-csv" else found["gpus"]) == 7


DRIVER_STATES = {  # loaded, library, fault -> exit status, what our parsers say
    ("", "580.95.05", ""): (9, {"unknown": "DriverNotLoaded"}),
    ("580.95.05", "580.95.05", "not-loaded"): (9, {"unknown": "DriverNotLoaded"}),
    ("580.82.07", "580.95.05", ""): (18, {"unknown": "DriverLibraryMismatch"}),
    ("580.95.05", "580.95.05", "no-devices"): (6, {"absent": "NoDevices"}),
    ("580.95.05", "580.95.05", "nvml-unknown-error"): (255, {"unknown": "NvmlUnknownError"}),
}


@pytest.mark.parametrize(("loaded", "library", "fault"), DRIVER_STATES)
@pytest.mark.parametrize(("form", "argv"), FORMS)
def test_states_of_the_driver_stay_apart(form: str, argv: list[str], loaded: str, library: str, fault: str) -> None:
    said = smi.answer(argv, node(set_all(f"driver_fault={fault}"), loaded, library))
    status, expected = DRIVER_STATES[loaded, library, fault]
    found = plain(FORMATS[form](said.out))
    assert said.status == status
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("argv", [[], ["-L"], ["-q", "-x"], ["--version"], ["topo", "-m"]])
def test_without_its_library_the_tool_says_only_that(argv: list[str]) -> None:
    said = smi.answer(argv, node(library=""))
    assert said.status == 12
    assert said.out.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.")


def test_versions_are_told_without_a_driver() -> None:
    found = parsed_text("nvsmi-table", smi.answer(["--version"], node()).out)
    assert (found["driver"], found["nvml"], found["smi"], found["cuda"]) == ("580.95.05", "580.95", "580.95.05", "13.0")
    recorded = (CORPUS / "nvsmi-table" / "version-flag-590.txt").read_text()
    keys = [line.partition(":")[0] for line in recorded.splitlines()]
    assert [line.partition(":")[0] for line in smi.answer(["--version"], node(loaded="")).out.splitlines()] == keys


SECTIONS = {
    "ECC": "ECC Errors",
    "ROW_REMAPPER": "Remapped Rows",
    "PERFORMANCE": "Clocks Event Reasons",
    "POWER": "GPU Power Readings",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_d_shows_one_section_as_the_whole_report_has_it(section: str) -> None:
    whole = smi.answer(["-q", "-i", "0"], node()).out.splitlines()
    part = smi.answer(["-q", "-d", section, "-i", "0"], node()).out.splitlines()
    assert f"    {SECTIONS[section]}" in part
    assert not any("Product Name" in line for line in part)
    assert set(part) < set(whole)


# setting -> path in the parsed -q -x -> its value
SEEN: dict[str, tuple[str, Any]] = {
    "gpus.0.rows.pending=true": ("remapped.pending", True),
    "gpus.0.rows.failure=true": ("remapped.failure", True),
    "gpus.0.rows.uncorrectable=3": ("remapped.uncorrectable", 3),
    "gpus.0.pcie.width=8": ("pcie.width", 8),
    "gpus.0.pcie.gen=1": ("pcie.generation", 1),
    "gpus.0.pcie.replays=7": ("pcie.replays", 7),
    "gpus.0.persistence=false": ("persistence", False),
    "gpus.0.ecc.pending=false": ("ecc_pending", False),
    "gpus.0.mig.pending=true": ("mig_pending", True),
    "gpus.0.temperature=88": ("temperature_celsius", 88),
    "gpus.0.power_limit=250.0": ("power.limit_watts", 250.0),
    "gpus.0.requires_reset=true": ("temperature_celsius.unknown", "GpuRequiresReset"),
    'gpus.0.unreadable=["temperature"]': ("temperature_celsius.unknown", "UnknownError"),
    "gpus.0.ecc.volatile.dram_uncorrectable=2": ("errors.dram_uncorrectable_volatile", 2),
}


@pytest.mark.parametrize("setting", SEEN)
def test_a_fault_is_read_from_both_reports_and_on_that_gpu_only(setting: str) -> None:
    path, expected = SEEN[setting]
    for form, argv in FORMS[:2]:
        found = parsed(form, *argv, settings=(setting,))["gpus"]
        value: Any = found[0]
        for key in path.split("."):
            value = value[key]
        assert value == expected
        assert found[1:] == parsed(form, *argv)["gpus"][1:]


def test_all_faults_at_once_hide_no_healthy_value() -> None:
    settings = ("gpus.5.lost=true", "gpus.6.requires_reset=true", 'gpus.3.unreadable=["fan", "power", "temperature"]', MIG,
                "gpus.2.pcie.width=1", 'gpus.4.throttle=["hw_power_brake"]', "gpus.7.ecc.current=false")  # fmt: skip
    for form, argv in FORMS:
        found = parsed(form, *argv, settings=settings)["gpus"]
        assert [gpu.get("index", gpu.get("minor")) for gpu in found] == [0, 1, 2, 3, 4, 6, 7]
    healthy, found = parsed("nvsmi-xml", "-q", "-x")["gpus"], parsed("nvsmi-xml", "-q", "-x", settings=settings)["gpus"]
    assert found[1] == healthy[1]
    assert found == parsed("nvsmi-q", "-q", settings=settings)["gpus"]


def test_a_power_brake_shows_as_hardware_slowdown_too() -> None:
    query = ["--query-gpu=clocks_event_reasons.active,clocks_throttle_reasons.hw_slowdown", "--format=csv,noheader", "-i", "0"]
    said = smi.answer(query, node(set_all('gpus.0.throttle=["hw_power_brake"]')))
    assert said.out == "0x0000000000000088, Active\n"


def test_processes_show_wherever_the_tool_shows_them() -> None:
    settings = ('gpus.3.processes=[{"pid": 4711, "name": "/opt/train/bin/python3", "memory_mib": 70000}]',)
    apps = smi.answer(["--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv"], node(set_all(*settings))).out.splitlines()
    uuid = node().state.gpus[3].uuid
    assert apps == ["pid, gpu_uuid, used_gpu_memory [MiB]", f"4711, {uuid}, 70000 MiB"]
    for form, argv in FORMS[:2]:
        gpu = parsed(form, *argv, settings=settings)["gpus"][3]
        assert [process["pid"] for process in gpu["processes"]] == [4711]
        assert gpu["memory"]["used_mib"] == 70000
    assert parsed("nvsmi-table", settings=settings)["processes"][0]["pid"] == 4711


MIG = (
    'gpus.0.mig={"current": true, "pending": true, "devices": [{"profile": "3g.40gb", "uuid": "MIG-a", "gpu_instance": 2, '
    '"compute_instance": 0, "multiprocessors": 42, "memory_mib": 40192}, '
    '{"profile": "1g.10gb", "uuid": "MIG-b", "gpu_instance": 9, "compute_instance": 0, "multiprocessors": 14, "memory_mib": 9728}]}'
)


def test_mig_devices_have_the_recorded_form() -> None:
    recorded = (CORPUS / "nvsmi-q" / "h100-mig-590.txt").read_text().splitlines()
    ours = smi.answer(["-q", "-i", "0"], node(set_all(MIG))).out.splitlines()

    def section(lines: list[str]) -> list[str]:
        start = lines.index("    MIG Device")
        return [re.sub(r": .*", ": #", line) for line in lines[start : start + 24]]

    assert section(ours) == section(recorded)
    box = [re.sub(r"\d", "#", line) for line in (CORPUS / "nvsmi-table" / "h100-mig-4-instances-590.txt").read_text().splitlines()]
    table = smi.answer(["-i", "0"], node(set_all(MIG))).out.splitlines()
    first = next(at for at, line in enumerate(table) if "MIG devices" in line)
    recorded_first = next(at for at, line in enumerate(box) if "MIG devices" in line)
    heads = slice(0, 6)
    assert [re.sub(r"\d", "#", line) for line in table[first:][heads]] == box[recorded_first:][heads]
    bars = [[at for at, char in enumerate(line) if char == "|"] for line in (table[first + 6], box[recorded_first + 6])]
    assert bars[0] == bars[1]


def test_mig_devices_are_listed_under_their_gpu() -> None:
    found = parsed("nvsmi-L", "-L", settings=(MIG,))
    assert len(found["gpus"]) == 8
    assert smi.answer(["-L"], node(set_all(MIG))).out.splitlines()[1] == "  MIG 3g.40gb     Device  0: (UUID: MIG-a)"


def test_topology_and_links_are_what_our_parsers_expect() -> None:
    found = parsed("topo", "topo", "-m")
    assert found["link_counts"] == {"NV12": 4, "NODE": 8, "SYS": 16}
    assert found["nic_names"] == {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}
    cut = assign(node().state, *parse_setting("gpus.0.nvlinks.3.active=false"))
    assert plain(FORMATS["topo"](smi.answer(["topo", "-m"], node(cut)).out))["link_counts"]["NV11"] == 1
    assert " Link 3: <inactive>" in smi.answer(["nvlink", "-s", "-i", "0"], node(cut)).out
    assert parsed("topo", "topo", "-p2p", "n")["kind"] == "p2p"


def test_a_reset_is_refused_while_a_process_uses_the_gpu() -> None:
    busy = node(set_all('gpus.1.processes=[{"pid": 9, "name": "x"}]', "gpus.1.rows.pending=true"))
    refused = smi.answer(["--gpu-reset", "-i", "1"], busy)
    assert (refused.status, refused.state) == (255, None)
    assert "GPU 00000000:31:00.0: In use by another client" in refused.out
    free = smi.answer(["-r", "-i", "1"], node(set_all("gpus.1.rows.pending=true")))
    assert (free.out, free.status) == ("GPU 00000000:31:00.0 was successfully reset.\n", 0)
    assert free.state is not None
    assert not free.state.gpus[1].rows.pending
    assert smi.answer(["-r", "-i", "1"], node(), root=False).status == 4
    assert smi.answer(["-r", "-i", "1"], node(set_all("gpus.1.lost=true"))).status == 15


def test_i_names_a_gpu_in_every_way() -> None:
    gpu = node().state.gpus[2]
    for name in ("2", gpu.uuid, gpu.serial, "00000000:4B:00.0", "0000:4b:00.0"):
        assert smi.answer(["--query-gpu=index", "--format=csv,noheader", "-i", name], node()).out == "2\n"
    assert smi.answer(["-i", "8"], node()).status == 6
