"""`nvidia-smi nvlink -s`: each GPU's links, with their speed in GB/s and direction, or `<inactive>`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.facts import nvsmi, raw, text
from reconciler.facts.nvsmi import Fault, Number
from reconciler.facts.nvsmi_list import ListedGpu, gpu_line
from reconciler.model.fact import Absent, Fact, Unknown, Value

_LINK = re.compile(r"^Link ([0-9]{1,3}): (\S.{0,60})$")
_ALL_INACTIVE = "all links are inactive"  # some versions print inActive


@dataclass(frozen=True, slots=True)
class Link:
    """A link. Its speed is Absent(Inactive) where it is down: nvidia-smi does not say why."""

    index: int
    speed_gb_s: Fact[Number]


@dataclass(frozen=True, slots=True)
class LinkedGpu:
    """A GPU's links. Absent(AllLinksInactive) where the driver says only that: a lone PCIe card, or a node without its fabric."""

    gpu: Fact[ListedGpu]
    links: Fact[tuple[Fact[Link], ...]]
    inactive: Fact[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Links:
    """All GPUs of the text. `uneven`: they do not have the same number of links, as after a cut or with a GPU that lost some."""

    gpus: tuple[LinkedGpu, ...]
    faults: tuple[Fault, ...]
    uneven: bool


@dataclass(slots=True)
class _Part:
    gpu: Fact[ListedGpu]
    links: list[Fact[Link]] = field(default_factory=list)
    said: Absent | Unknown = field(default_factory=lambda: Unknown("Missing"))

    def end(self) -> LinkedGpu:
        if not self.links:
            return LinkedGpu(self.gpu, self.said, self.said)
        known = [link.value for link in self.links if isinstance(link, Value)]
        down = tuple(link.index for link in known if isinstance(link.speed_gb_s, Absent))
        inactive: Fact[tuple[int, ...]] = Value(down) if len(known) == len(self.links) else Unknown("UnreadableLine")
        return LinkedGpu(self.gpu, Value(tuple(self.links)), inactive)


def _link(line: str) -> Fact[Link]:
    found = _LINK.match(line)
    if not found or ": " in found[2]:  # nvlink -e, -R and others put a name before their number
        return Unknown("UnreadableLine", raw.clean(line[:400], 120))
    speed = Absent("Inactive") if found[2] == "<inactive>" else nvsmi.measured(found[2], "GB/s")
    return Value(Link(int(found[1]), speed))


class _Known(dict[str, Fact[Link]]):
    """Each line of a link is understood once: all GPUs have the same ones."""

    def __missing__(self, line: str) -> Fact[Link]:
        found = _link(line)
        self[line] = found
        return found


def parse(saved: str) -> Fact[Links]:
    """All GPUs; Absent(NoDevices) or Unknown where there is none."""
    parts: list[_Part] = []
    faults: list[Fault] = []
    known = _Known()
    for line in map(str.strip, text.clean(saved).split("\n")):
        if line.startswith("Link ") and parts:
            parts[-1].links.append(known[line])
        elif (gpu := gpu_line(line)) is not None:
            parts.append(_Part(gpu))
        elif _ALL_INACTIVE in line.lower() and parts:
            parts[-1].said = Absent("AllLinksInactive")
        elif message := nvsmi.fault(line):
            faults.append(message)
            if parts:
                parts[-1].said = Unknown(message.code, message.said)
    if not parts:
        return nvsmi.nothing(saved, faults)
    return Value(Links(tuple(part.end() for part in parts), tuple(faults), len({len(part.links) for part in parts}) > 1))
