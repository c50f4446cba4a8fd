"""The machine itself: processors, memory, NUMA nodes, and what its firmware says that it is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, raw, scalars
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Read, Unknown, Value

DMI = (
    "sys_vendor",
    "product_name",
    "product_serial",
    "product_uuid",
    "board_name",
    "board_serial",
    "bios_vendor",
    "bios_version",
    "bios_date",
)
_LIST = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_MEMORY = re.compile(r"^(\w{1,30}):[ \t]+([0-9]{1,18})( kB)?$", re.MULTILINE)
_HYPERVISOR = re.compile(r"^flags\s*:.*\bhypervisor\b", re.MULTILINE)
_MODEL = re.compile(r"^model name\s*:[ \t]*(\S[^\n]{0,200})$", re.MULTILINE)
_NODE = re.compile(r"Node [0-9]{1,4} MemTotal:[ \t]+([0-9]{1,18}) kB")


@dataclass(frozen=True, slots=True)
class Cpus:
    """`sockets`, `cores`, `threads`: how many are online in the whole machine. `hypervisor`: the processor says so."""

    model: Fact[str]
    sockets: Fact[int]
    cores: Fact[int]
    threads: Fact[int]
    hypervisor: Fact[bool]


@dataclass(frozen=True, slots=True)
class Memory:
    """`total` in bytes; huge pages: how many of which size in bytes, and how many of them nobody uses."""

    total: Fact[int]
    swap: Fact[int]
    huge_page_bytes: Fact[int]
    huge_pages: Fact[int]
    huge_pages_free: Fact[int]


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Processors of a node as /sys writes them, `0-31,64-95`; its memory in bytes; its distance to each node, itself included."""

    cpus: Fact[str]
    bytes: Fact[int]
    distances: Fact[str]


@dataclass(frozen=True, slots=True)
class Hardware:
    """`dmi` by the kernel's name of the field; Absent(NoSuchFile) each where the firmware has no such table."""

    cpus: Cpus
    memory: Memory
    numa: Fact[dict[str, NumaNode]]
    dmi: dict[str, Fact[str]]


def count(cpus: str) -> Fact[int]:
    """How many numbers `0-31,64` are."""
    if len(cpus) > 10_000 or not _LIST.fullmatch(cpus):
        return scalars.strange(cpus)
    ranges = [part.partition("-") for part in cpus.split(",")]
    return Value(sum(int(last or first) - int(first) + 1 for first, _, last in ranges))


def _pieces(said: Any) -> Fact[int]:
    """How many lists of processors there are: every one has to be readable."""
    if not isinstance(said, list) or not said:
        return Unknown("WrongShape", raw.clean(repr(said)[:200], 60))
    for item in said:
        found = answers.then(answers.text(item), count)
        if not isinstance(found, Value):
            return Unknown("UnreadableCell", raw.clean(repr(item)[:200], 60))
    return Value(len(said))


def cpus(answer: Fact[Any]) -> Cpus:
    if not isinstance(answer, Value):
        return Cpus(answer, answer, answer, answer, answer)
    said = answers.mapping(answer.value)
    first = answers.text(said.get("first"))
    model = _MODEL.search(first.value) if isinstance(first, Value) else None
    return Cpus(
        model=Value(model[1].strip()) if model else Unknown("Missing", "model name") if isinstance(first, Value) else first,
        sockets=_pieces(said.get("sockets")),
        cores=_pieces(said.get("cores")),
        threads=answers.then(answers.text(said.get("online")), count),
        hypervisor=Value(_HYPERVISOR.search(first.value) is not None) if isinstance(first, Value) else first,
    )


def memory(text: Fact[str]) -> Memory:
    """/proc/meminfo: its kB are KiB (proc(5))."""
    fields = {name: (int(amount), unit) for name, amount, unit in _MEMORY.findall(text.value)} if isinstance(text, Value) else {}

    def amount(name: str) -> Fact[int]:
        if not isinstance(text, Value):
            return text
        if name not in fields:
            return Absent("NoHugePages") if name.startswith("Huge") else Unknown("Missing", name)
        number, unit = fields[name]
        return Value(number * 1024 if unit else number)

    names = ("MemTotal", "SwapTotal", "Hugepagesize", "HugePages_Total", "HugePages_Free")
    return Memory(*(amount(name) for name in names))


def _numa(answer: Fact[Any]) -> Fact[dict[str, NumaNode]]:
    found = answers.members(answer, "numa")
    if not isinstance(found, Value):
        return found
    nodes = {}
    for name, said in found.value.items():
        files = answers.mapping(said)
        total = _NODE.search(files["meminfo"]) if isinstance(files.get("meminfo"), str) else None
        nodes[name] = NumaNode(
            cpus=answers.text(files.get("cpulist")),
            bytes=Value(int(total[1]) * 1024) if total else Unknown("Missing", "MemTotal"),
            distances=answers.text(files.get("distance")),
        )
    return Value(nodes) if nodes else Absent("NotNuma")


def parse(raws: tuple[Raw, ...]) -> Fact[Hardware]:
    machine, meminfo, *firmware = raws
    answer = raw.fragment(machine)
    dmi = {name: _dmi(raw.file_text(said)) for name, said in zip(DMI, firmware, strict=True)}
    return Value(Hardware(cpus(answer), memory(raw.file_text(meminfo)), _numa(answer), dmi))


def _dmi(found: Fact[str]) -> Fact[str]:
    return answers.text(found.value) if isinstance(found, Value) else found


def stable(value: Any) -> Any:
    """Without what is in use of the huge pages."""
    return {**value, "memory": {k: v for k, v in value["memory"].items() if k != "huge_pages_free"}}


FACT = LiveFact(
    "hardware",
    lambda about: (
        Ask("machine", json.dumps({"root": "/"}), quick=True),
        Read("/proc/meminfo", 1 << 16),
        *(Read(f"/sys/class/dmi/id/{name}", 4096) for name in DMI),
    ),
    parse,
    stable,
)
