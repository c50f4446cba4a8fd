"""What nvidia-smi says instead of an answer, with what little stands beside it.

No devices, driver not loaded, versions that do not match and a lost GPU are different states; none of them is "0 GPUs, all well".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import nvsmi, nvsmi_csv, scalars, text
from reconciler.facts.nvsmi import Fault, Number
from reconciler.facts.nvsmi_csv import Row
from reconciler.facts.nvsmi_table import memory, sensors
from reconciler.model.fact import Absent, Fact, Unknown, Value

_MEMORY = re.compile(r"\b[0-9]{1,9}Mi?B / {1,9}[0-9]{1,9}Mi?B\b")


@dataclass(frozen=True, slots=True)
class Sensors:
    """A line of the table for people. `needs_reset`: the GPU answers nothing but its memory, which may look used or free."""

    fan_percent: Fact[Number]
    temperature_celsius: Fact[Number]
    performance_state: Fact[str]
    power_watts: Fact[Number]
    power_limit_watts: Fact[Number]
    memory_used_mib: Fact[Number]
    memory_total_mib: Fact[Number]
    needs_reset: bool


@dataclass(frozen=True, slots=True)
class Report:
    """The first message (all are in `faults`), and the rows of a CSV or lines of a table around it.

    `error` is a code; `exit_status` what goes with it by the manual; `library` the version that NVML says it has.
    """

    error: Fact[str]
    exit_status: Fact[int]
    bus_id: Fact[str]
    index: Fact[int]
    library: Fact[str]
    gpu_count: Fact[int]
    rows: tuple[Fact[Row], ...]
    sensors: tuple[Sensors, ...]
    faults: tuple[Fault, ...]


def _sensors(line: str) -> Sensors | None:
    """`ERR!  ERR!  ERR!          N/A / N/A     58222MiB / 97887MiB`, with or without bars."""
    found = _MEMORY.search(line[:400])
    if not found:
        return None
    read = sensors(line[: found.start()].replace("|", " "))
    silent = all(
        isinstance(cell := read[name], Unknown) and cell.why in ("FieldError", "GpuRequiresReset")
        for name in ("fan_percent", "temperature_celsius", "performance_state")
    )
    return Sensors(**read, **memory(found[0]), needs_reset=silent)


def _count(first: Fault | None) -> Fact[int]:
    if first is None:
        return Unknown("NotSaid")
    return Value(0) if first.code == "NoDevices" else Unknown(first.code)


def parse(saved: str) -> Fact[Report]:
    """The messages in a text; Unknown(UnreadableText) where it has none, and no line of sensors.

    Absent(NotInstalled): a shell found no nvidia-smi.
    """
    whole, last = text.ended(saved)
    if absent := scalars.no_command([*whole[:1000].split("\n"), last], "nvidia-smi"):
        return absent
    lines = [(line, nvsmi.fault(line)) for line in whole.split("\n")]
    cut = nvsmi.fault(last, whole=False)
    faults = [message for _, message in lines if message] + ([cut] if cut else [])
    rest = [line for line, message in lines if not message]
    read = tuple(found for line in rest if "MiB" in line and (found := _sensors(line)))
    if not faults and not read:
        return nvsmi.nothing(saved)
    first = faults[0] if faults else None
    table = nvsmi_csv.parse("\n".join(rest) + ("" if cut else last))
    return Value(
        Report(
            error=Value(first.code) if first else Absent("NoMessage"),
            exit_status=first.exit_status if first else Absent("NoMessage"),
            bus_id=first.bus_id if first else Absent("NoMessage"),
            index=first.index if first else Absent("NoMessage"),
            library=nvsmi.library_version(saved),
            gpu_count=_count(first),
            rows=table.value.rows if isinstance(table, Value) else (),
            sensors=read,
            faults=tuple(faults),
        )
    )
