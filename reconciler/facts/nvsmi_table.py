"""`nvidia-smi` without options (the table for people, drivers 325 to 610) and `nvidia-smi --version`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from reconciler.facts import nvsmi, raw, text
from reconciler.facts.nvsmi import Fault, Number, Process
from reconciler.model.fact import Absent, Fact, Unknown, Value

_MISSING = Unknown("Missing")
_TRUNCATED = Unknown("Truncated")
_HEADER = re.compile(r"NVIDIA-SMI ([0-9.]{1,30})")
_DRIVER = re.compile(r"(Driver Version|KMD Version): ([^|]{1,60})")
_CUDA = re.compile(r"(CUDA Version|CUDA UMD Version): ([^|]{1,60})")
_FIRST = re.compile(r"^ *([0-9]{1,4}) +(\S.*)$")
_TITLES = ("Bus-Id", "MIG devices:", "Processes:")
_LABELS = {"NVIDIA-SMI": "smi", "NVML": "nvml", "DRIVER": "driver", "CUDA": "cuda", "KMD": "driver", "CUDA UMD": "cuda"}


@dataclass(frozen=True, slots=True)
class TableGpu:
    """A GPU's box. `mode` is what its third column shows: persistence on Linux, the driver model on Windows.

    `name_truncated`: the name did not fit (`NVIDIA GeForce ...`) and is no name to compare.
    """

    index: Fact[Number]
    name: Fact[str]
    name_truncated: bool
    mode: Fact[str]
    bus_id: Fact[str] = _TRUNCATED
    ecc_uncorrectable: Fact[Number] = _TRUNCATED
    fan_percent: Fact[Number] = _TRUNCATED
    temperature_celsius: Fact[Number] = _TRUNCATED
    performance_state: Fact[str] = _TRUNCATED
    power_watts: Fact[Number] = _TRUNCATED
    power_limit_watts: Fact[Number] = _TRUNCATED
    memory_used_mib: Fact[Number] = _TRUNCATED
    memory_total_mib: Fact[Number] = _TRUNCATED
    utilization_percent: Fact[Number] = _TRUNCATED
    compute_mode: Fact[str] = _TRUNCATED
    mig: Fact[bool] = _TRUNCATED


@dataclass(frozen=True, slots=True)
class TableMig:
    """A MIG device's box: its GPU, GPU instance, compute instance and device number."""

    gpu: Fact[Number]
    gpu_instance: Fact[Number]
    compute_instance: Fact[Number]
    device: Fact[Number]


@dataclass(frozen=True, slots=True)
class Screen:
    """What the table says. `*_label`: the words it uses, which changed with driver 610. `processes` names are cut by nvidia-smi.

    `deprecated`: labels of --version whose value is only that they are. `complete`: every GPU's box is closed.
    """

    smi: Fact[str]
    nvml: Fact[str]
    driver: Fact[str]
    driver_label: Fact[str]
    cuda: Fact[str]
    cuda_label: Fact[str]
    driver_model: Fact[str]
    gpus: tuple[Fact[TableGpu], ...]
    mig_devices: tuple[Fact[TableMig], ...]
    processes: Fact[tuple[Fact[Process], ...]]
    deprecated: tuple[str, ...]
    faults: tuple[Fault, ...]
    complete: bool


def _unreadable(cells: list[str]) -> Unknown:
    return Unknown("UnreadableRow", raw.clean("|".join(cells)[:400], 120))


def sensors(cell: str) -> dict[str, Any]:
    """Fan, temperature, performance state, power and its cap: `| N/A   34C    P0    58W / 400W |`."""
    before, slash, cap = cell.partition("/ ")
    words = before.split()
    fan, heat, state, power = [*words, *[""] * 4][:4]
    return {
        "fan_percent": nvsmi.measured(fan, "%"),
        "temperature_celsius": nvsmi.measured(heat, "C"),
        "performance_state": nvsmi.shown(state),
        "power_watts": nvsmi.measured(power, "W"),
        "power_limit_watts": nvsmi.measured(cap, "W") if slash else _MISSING,
    }


def memory(cell: str) -> dict[str, Any]:
    """`0MiB / 81920MiB`."""
    used, slash, total = cell.partition(" / ")
    return {
        "memory_used_mib": nvsmi.measured(used, "MiB"),
        "memory_total_mib": nvsmi.measured(total, "MiB") if slash else _MISSING,
    }


def _first(cells: list[str]) -> dict[str, Any] | None:
    """`|   0  NVIDIA A40          On   | 00000000:35:00.0 Off |                    0 |`"""
    found = _FIRST.match(cells[0]) if cells else None
    if not found:
        return None
    name, _, mode = found[2].rstrip().rpartition(" ")
    fields = {
        "index": Value(int(found[1])),
        "name": nvsmi.shown(name),
        "name_truncated": name.rstrip().endswith("..."),
        "mode": nvsmi.shown(mode),
    }
    if len(cells) > 1:
        fields["bus_id"] = nvsmi.shown(cells[1].strip().partition(" ")[0])
    if len(cells) > 2:
        # with MIG on, the column says so instead of a count
        fields["ecc_uncorrectable"] = Absent("CountedPerMigDevice") if cells[2].strip() == "On" else nvsmi.measured(cells[2])
    return fields


def _gpu(box: list[list[str]], titles: str) -> Fact[TableGpu]:
    """The GPU of a box of two lines, or three from driver 450 on."""
    fields = _first(box[0])
    if fields is None:
        return _unreadable(box[0])
    second = box[1] if len(box) > 1 else []
    if second:
        fields |= sensors(second[0])
    if len(second) > 1:
        fields |= memory(second[1])
    if len(second) > 2:
        use, _, mode = second[2].strip().partition(" ")
        fields |= {"utilization_percent": nvsmi.measured(use, "%"), "compute_mode": nvsmi.shown(mode)}
    if len(box) > 2 and len(box[2]) > 2:
        fields["mig"] = nvsmi.flag(nvsmi.shown(box[2][2]))
    elif "MIG M." not in titles:
        fields["mig"] = _MISSING
    return Value(TableGpu(**fields))


def _mig(cells: list[str]) -> Fact[TableMig]:
    """`|  0    2   0   0  |              26MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |`"""
    words = cells[0].split() if cells else []
    if len(words) != 4 or not words[0].isdecimal():
        return _unreadable(cells)
    gpu, instance, compute, device = (nvsmi.measured(word) for word in words)
    return Value(TableMig(gpu, instance, compute, device))


def _process(cells: list[str], pid: int) -> Fact[Process]:
    """`|    0   N/A  N/A   2750406      C   /usr/bin/python3                            10788MiB |`; `pid`: its column."""
    words = "|".join(cells).split()
    if len(words) < pid + 4 or not words[0].isdecimal():
        return _unreadable(cells)
    name = " ".join(words[pid + 2 : -1])
    used = nvsmi.number(nvsmi.shown(words[-1]), "MiB")
    return Value(Process(nvsmi.measured(words[pid]), nvsmi.shown(words[pid + 1]), nvsmi.shown(name), used))


@dataclass(slots=True)
class _Boxes:
    """The lines of the three parts of the screen, in boxes between borders.

    `titles`: what stands in bars above each part; `head`: lines without bars.
    """

    head: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    head_rows: list[list[list[str]]] = field(default_factory=list)
    gpus: list[list[list[str]]] = field(default_factory=list)
    mig: list[list[list[str]]] = field(default_factory=list)
    processes: list[list[list[str]]] = field(default_factory=list)
    closed: bool = False  # whether the last box is

    def read(self, lines: list[str]) -> None:
        section = self.head_rows
        body = False
        box: list[list[str]] = []
        for line in map(str.strip, lines):
            if line[:1] == "|" and line[1:2] not in ("=", "-"):
                title = "" if box else next((title for title in _TITLES if title in line[:70]), "")
                if title:
                    section = {"Bus-Id": self.gpus, "MIG devices:": self.mig, "Processes:": self.processes}[title]
                    body = self.closed = False
                if not body:
                    self.titles += [line[:200]]
                    continue
                if not box:
                    section.append(box)
                    self.closed = False
                box.append(line.split("|")[1:-1])
            elif line.startswith("|="):
                body, box, self.closed = True, [], False
            elif line[:2] in ("+-", "|-"):
                self.closed, box = body, []
            else:
                self.head.append(line)


def _label(pattern: re.Pattern[str], head: str) -> tuple[Fact[str], Fact[str]]:
    """A version in the head of the table, and the words before it."""
    found = pattern.search(head)
    return (nvsmi.shown(found[2].partition("  ")[0]), Value(found[1])) if found else (_MISSING, _MISSING)


def _versions(lines: list[str]) -> tuple[dict[str, Fact[str]], tuple[str, ...]]:
    """The lines of --version, and the labels that only say that they are deprecated."""
    found: dict[str, Fact[str]] = {}
    deprecated: list[str] = []
    for line in lines:
        label, colon, value = line.partition(" : ")
        label = label.strip()
        key = _LABELS.get(label[: -len(" version")].upper()) if colon and label.lower().endswith(" version") else None
        if key is None:
            continue
        cell = nvsmi.shown(value)
        if cell == Absent("Deprecated"):
            deprecated.append(label)
        else:
            found[key] = cell
    return found, tuple(deprecated)


def _driver_model(gpus: tuple[Fact[TableGpu], ...], titles: str) -> Fact[str]:
    """Windows shows it where Linux shows the persistence mode."""
    if "Driver-Model" not in titles:
        return Absent("NotShown") if "Bus-Id" in titles else _TRUNCATED
    first = gpus[0] if gpus else _MISSING
    return first.value.mode if isinstance(first, Value) else first


def _none_runs(cells: list[str]) -> bool:
    return bool(cells) and cells[0].strip() == "No running processes found"


def parse(saved: str) -> Fact[Screen]:
    """The table, or --version; Absent(NoDevices) or Unknown where it is neither."""
    boxes = _Boxes()
    whole, last = text.ended(saved)
    boxes.read(whole.split("\n"))
    if last[:2] == "+-" and last[-1:] == "+":
        boxes.read([last])  # a border is whole
    versions, deprecated = _versions(boxes.head)
    faults = nvsmi.faults(boxes.head, last)
    head = "\n".join(boxes.titles[:20])
    smi = _HEADER.search(head)
    if not smi and not versions and not boxes.gpus:
        return nvsmi.nothing(saved, faults)
    (driver, driver_label), (cuda, cuda_label) = _label(_DRIVER, head), _label(_CUDA, head)
    titles = "\n".join(boxes.titles[:40])
    gpus = tuple(_gpu(box, titles) for box in boxes.gpus)
    pid = 3 if " GI " in titles else 1
    running = tuple(_process(cells, pid) for box in boxes.processes for cells in box if not _none_runs(cells))
    ended = "Processes:" in titles and boxes.closed
    return Value(
        Screen(
            smi=versions.get("smi", Value(smi[1]) if smi else _MISSING),
            nvml=versions.get("nvml", _MISSING),
            driver=versions.get("driver", driver),
            driver_label=driver_label,
            cuda=versions.get("cuda", cuda),
            cuda_label=cuda_label,
            driver_model=_driver_model(gpus, titles),
            gpus=gpus,
            mig_devices=tuple(_mig(box[0]) for box in boxes.mig),
            processes=Value(running) if ended else _TRUNCATED if "Processes:" in titles else _MISSING,
            deprecated=deprecated,
            faults=faults,
            complete=bool(gpus) and ended,
        )
    )
