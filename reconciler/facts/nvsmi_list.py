"""`nvidia-smi -L`: a line for each GPU, and below it one for each of its MIG devices."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import nvsmi, raw, text
from reconciler.facts.nvsmi import Fault
from reconciler.model.fact import Fact, Unknown, Value

_GPU = re.compile(r"^GPU ([0-9]{1,4}): (\S[^(\n]{0,120}(?:\([^U][^)\n]{0,60}\) ?)?)\(UUID: (GPU-[^()\s]{1,60})\)$")
_MIG = re.compile(r"^MIG (\S{1,40}) {1,40}Device {1,10}([0-9]{1,4}): \(UUID: (MIG-[^()\s]{1,90})\)$")


@dataclass(frozen=True, slots=True)
class ListedMig:
    """A MIG device: `profile` is `3g.40gb`, or `1c.3g.71gb` where several share a GPU instance."""

    profile: str
    index: int
    uuid: str


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """A GPU by its index, which has gaps where a GPU has vanished."""

    index: int
    name: str
    uuid: str
    mig_devices: tuple[Fact[ListedMig], ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """All GPUs in the order of the text. `damaged`: a line about a GPU could not be read, or the text ends within one."""

    gpus: tuple[Fact[ListedGpu], ...]
    faults: tuple[Fault, ...]
    damaged: bool


def gpu_line(line: str) -> Fact[ListedGpu] | None:
    """A GPU's line, Unknown(UnreadableLine) for one that is damaged, None for another line."""
    if not line.startswith("GPU"):
        return None
    found = _GPU.match(line)
    if not found or "\ufffd" in line:
        return Unknown("UnreadableLine", raw.clean(line[:400], 120))
    return Value(ListedGpu(int(found[1]), found[2].rstrip(), found[3]))


def mig_line(line: str) -> Fact[ListedMig] | None:
    """The same for a MIG device."""
    if not line.startswith("MIG"):
        return None
    found = _MIG.match(line)
    if not found or "\ufffd" in line:
        return Unknown("UnreadableLine", raw.clean(line[:400], 120))
    return Value(ListedMig(found[1], int(found[2]), found[3]))


def parse(saved: str) -> Fact[Listing]:
    """All GPUs; other lines are skipped. Absent(NoDevices) or Unknown where there is none."""
    gpus: list[Fact[ListedGpu]] = []
    devices: list[list[Fact[ListedMig]]] = []
    faults: list[Fault] = []
    for line in map(str.strip, text.clean(saved).split("\n")):
        if (gpu := gpu_line(line)) is not None:
            gpus.append(gpu)
            devices.append([])
        elif (device := mig_line(line)) is not None and devices:
            devices[-1].append(device)
        elif message := nvsmi.fault(line):
            faults.append(message)
    if not gpus:
        return nvsmi.nothing(saved, faults)
    found = tuple(_with(gpu, tuple(below)) for gpu, below in zip(gpus, devices, strict=True))
    damaged = any(isinstance(item, Unknown) for item in (*gpus, *(device for below in devices for device in below)))
    return Value(Listing(found, tuple(faults), damaged))


def _with(gpu: Fact[ListedGpu], devices: tuple[Fact[ListedMig], ...]) -> Fact[ListedGpu]:
    if not isinstance(gpu, Value) or not devices:
        return gpu
    return Value(ListedGpu(gpu.value.index, gpu.value.name, gpu.value.uuid, devices))
