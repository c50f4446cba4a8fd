"""The stand-in, given an H200 host's values, says what that host's own tools said: line by line."""

import re

import pytest

from lab.gpus import procfs, smi
from tests.gpus.host import RECORDED, h200, node

# read twice on the host, with a moment between: their digits may differ, all else may not
_MOVING = re.compile(r"PDI|<pdi>|Instantaneous Power|instant_power|Throughput|[tr]x_util|Average Power Draw|average_power_draw")
_QUERY = (
    "index,name,uuid,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,"
    "clocks.current.sm,clocks.current.memory,ecc.mode.current,ecc.errors.uncorrected.volatile.total,persistence_mode,pci.bus_id,"
    "pcie.link.gen.current,pcie.link.width.current,mig.mode.current,vbios_version,compute_cap"
)
RECORDINGS: dict[str, list[str]] = {
    "nvidia-smi.txt": [],
    "nvidia-smi-L.txt": ["-L"],
    "nvidia-smi-q.txt": ["-q"],
    "nvidia-smi-q.xml": ["-q", "-x"],
    "nvidia-smi-query.csv": [f"--query-gpu={_QUERY}", "--format=csv"],
    "nvidia-smi-topo.txt": ["topo", "-m"],
    "nvidia-smi-topo-p2p.txt": ["topo", "-p2p", "r"],
}


def moving_masked(text: str) -> list[str]:
    return [re.sub(r"[0-9a-f]", "#", line) if _MOVING.search(line) else line for line in text.split("\n")]


@pytest.mark.parametrize("name", RECORDINGS)
def test_output_is_the_recorded_one(name: str) -> None:
    said = smi.answer(RECORDINGS[name], h200())
    assert said.status == 0
    assert moving_masked(said.out) == moving_masked((RECORDED / name).read_text())


def test_driver_version_file() -> None:
    recorded = (RECORDED / "driver-version.txt").read_text()
    assert procfs.version("580.159.04", builder="nixbld@", compiler="gcc version 15.3.0 (GCC) ") == recorded


_LINE = re.compile(r"(?P<indent>[ \t]*)<?(?P<key>[^:<>]*?)(?P<mark> *: |>|\Z)(?P<value>[^<]*)")
_CLOCK_STEPS = re.compile(r"supported_(graphics|mem)_clock|<value>")


def keys_and_units(lines: list[str]) -> list[tuple[str, str, int, str]]:
    """Indentation, key, place of the colon and unit of each line; the value itself is masked.

    Boards before Hopper name temperatures, not margins to them: T.Limit is taken out of the keys. How many clock steps there are
    is the board's own.
    """
    found = []
    for line in lines:
        if not (match := _LINE.match(line)) or _CLOCK_STEPS.search(line):
            continue
        key = re.sub(r"T\.Limit |_tlimit", "", match["key"])
        colon = match.end("mark") if ":" in match["mark"] else 0
        unit = re.sub(r"-?\d[\d.]*", "#", match["value"]) if re.match(r"-?\d[\d.]* [A-Za-z%]", match["value"]) else ""
        found.append((match["indent"], key, colon, unit))
    return found


def from_first_gpu(text: str, start: str) -> list[str]:
    lines = text.split("\n")
    return lines[next(at for at, line in enumerate(lines) if start in line) :]


@pytest.mark.parametrize(("argv", "file", "start"), [
    (["-q"], "nvidia-smi-q.txt", "Product Name"), (["-q", "-x"], "nvidia-smi-q.xml", "product_name"),
])  # fmt: skip
def test_an_a100_has_the_same_keys_order_indentation_and_units(argv: list[str], file: str, start: str) -> None:
    ours = keys_and_units(from_first_gpu(smi.answer([*argv, "-i", "0"], node()).out, start))
    theirs = keys_and_units(from_first_gpu((RECORDED / file).read_text(), start))
    assert [line[:3] for line in ours] == [line[:3] for line in theirs]
    other_units = [(our[1], our[3], their[3]) for our, their in zip(ours, theirs, strict=True) if our[3] != their[3]]
    # an A100 has no margin to its limit, and no reading of its memory's power
    hopper_only = [("GPU Temp", "", "# C"), ("Average Power Draw", "", "# W")]
    assert other_units == (hopper_only if file.endswith("txt") else [("gpu_temp", "", "# C"), ("average_power_draw", "", "# W")])


def test_the_table_of_eight_has_the_recorded_columns() -> None:
    bars = [at for at, char in enumerate((RECORDED / "nvidia-smi.txt").read_text().split("\n")[8]) if char == "|"]
    rows = [line for line in smi.answer([], node()).out.split("\n") if "A100" in line]
    assert len(rows) == 8
    for row in rows:
        assert [at for at, char in enumerate(row) if char == "|"] == bars
