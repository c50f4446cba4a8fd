"""What the outputs of nvidia-smi share: the words of a cell, and the messages that stand instead of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from reconciler.facts import raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

Number = int | float

# words of nvidia-smi for what a GPU does not have; lower case, without the brackets of CSV
_ABSENT = {
    "n/a": "NotAvailable",
    "not available": "NotAvailable",
    "not available in wddm driver model": "NotAvailable",
    "not supported": "NotSupported",
    "not found": "NotFound",
    "requested functionality has been deprecated": "Deprecated",
}
# and for what it could not read
_UNKNOWN = {
    "": "Empty",
    "err!": "FieldError",
    "error": "FieldError",
    "unknown": "UnknownError",
    "unknown error": "UnknownError",
    "gpu is lost": "GpuLost",
    "gpu requires reset": "GpuRequiresReset",
    "insufficient permissions": "PermissionDenied",
    "insufficient external power": "InsufficientPower",
}
_FLAGS = {
    "enabled": True,
    "yes": True,
    "on": True,
    "active": True,
    "disabled": False,
    "no": False,
    "off": False,
    "not active": False,
}
_NUMBER = re.compile(r"^([+-]?[0-9]{1,18}(\.[0-9]{1,9})?)(?: ?([A-Za-z/%()]{1,12}))?$")
_UNITS = {"MB": "MiB", "bank(s)": "banks"}  # before 331 `MB` stood for MiB

# what stands in a line, its code, and the exit status that goes with it: by the manual (nvidia-smi(1), RETURN VALUE), 18 by reports
# of it (anderskm/gputil issue 55, mozilla/translations issue 1167). None: nobody says
_MESSAGES: tuple[tuple[str, str, int | None], ...] = (
    ("no devices were found", "NoDevices", 6),
    ("no devices found", "NoDevices", 6),
    ("couldn't communicate with the nvidia driver", "DriverNotLoaded", 9),
    ("driver not loaded", "DriverNotLoaded", 9),
    ("driver/library version mismatch", "DriverLibraryMismatch", 18),
    ("mismatch in versions between nvidia-smi and nvml", "SmiLibraryMismatch", None),
    ("gpu is lost", "GpuLost", 15),
    ("gpu requires reset", "GpuRequiresReset", None),
    ("couldn't find libnvidia-ml", "LibraryMissing", 12),
    ("insufficient permissions", "PermissionDenied", 4),
    ("do not have suffient permissions", "PermissionDenied", 4),  # nvidia-smi's own spelling
    ("do not have sufficient permissions", "PermissionDenied", 4),
    ("nvml/rm version mismatch", "DriverLibraryMismatch", 18),
    ("gpu access blocked by the operating system", "AccessBlocked", None),
    ("failed to initialize nvml: unknown error", "NvmlUnknownError", 255),
    ("inforom is corrupted", "InforomCorrupted", 14),
    ("unable to determine the device handle", "DeviceUnreadable", None),
    ("failed to initialize nvml", "NvmlFailed", None),
    ("nvidia-smi has failed", "NvmlFailed", None),
)
_UNSPECIFIC = ("NvmlFailed", "DeviceUnreadable")  # what is wrong follows
_STARTS = (
    "No devices",
    "NVIDIA-SMI has",
    "NVIDIA-SMI couldn",
    "Failed to ",
    "Unable to ",
    "Mismatch in ",
    "WARNING: ",
    "Warning: ",
)
_BUS_ID = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_INDEX = re.compile(r"GPU ?([0-9]{1,3}): ")
_LIBRARY = re.compile(r"NVML library version: ([0-9.]{1,20})(?=\s)")


@dataclass(frozen=True, slots=True)
class Fault:
    """A message of nvidia-smi instead of an answer, about all GPUs or one. `exit_status`: what goes with it by the manual."""

    code: str
    said: str
    exit_status: Fact[int]
    bus_id: Fact[str]
    index: Fact[int]


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a GPU. `type`: C (compute), G (graphics), C+G, M (MPS)."""

    pid: Fact[Number]
    type: Fact[str]
    name: Fact[str]
    used_memory_mib: Fact[Number]


def shown(text: str) -> Fact[str]:
    """A cell as nvidia-smi shows it. What is behind it is kept as the detail where it could not be read."""
    bare = text.strip()
    inner = bare[1:-1].strip() if bare[:1] == "[" and bare[-1:] == "]" else bare
    word = inner.lower()
    if word in _ABSENT:
        return Absent(_ABSENT[word])
    if word in _UNKNOWN:
        return Unknown(_UNKNOWN[word], bare)
    if word.startswith("deprecated"):
        return Absent("Deprecated")
    if "\ufffd" in inner:
        return Unknown("UnreadableText", raw.clean(bare, 120))
    return Value(inner.partition(" [Deprecated")[0].rstrip() if "[" in inner else inner)


def number(cell: Fact[str], unit: str = "") -> Fact[Number]:
    """The number of a cell that has to have `unit`: where it is missing, the text is cut. `16x` has the unit `x`."""
    if not isinstance(cell, Value):
        return cell
    found = _NUMBER.match(cell.value)
    if not found:
        return Unknown("NotANumber", raw.clean(cell.value, 80))
    said = found[3] or ""
    if _UNITS.get(said, said) != unit:
        return Unknown("UnexpectedUnit", raw.clean(cell.value, 80))
    return Value(float(found[1]) if found[2] else int(found[1]))


@lru_cache(maxsize=4096)
def _short_measured(cell: str, unit: str) -> Fact[Number]:
    return number(shown(cell), unit)


def measured(cell: str, unit: str = "") -> Fact[Number]:
    """The number that a cell shows. Short ones are remembered: most cells of a table are the same few."""
    return _short_measured(cell, unit) if len(cell) <= 32 else number(shown(cell), unit)


def flag(cell: Fact[str]) -> Fact[bool]:
    """Enabled, Yes, On, Active; Disabled, No, Off, Not Active."""
    if not isinstance(cell, Value):
        return cell
    known = _FLAGS.get(cell.value.lower())
    return Value(known) if known is not None else Unknown("UnexpectedWord", raw.clean(cell.value, 80))


def fault(line: str, whole: bool = True) -> Fault | None:
    """The message in a line, None where the line is something else, or is cut (not `whole`) before it says what is wrong."""
    line = line.strip().removeprefix("NVML: ")
    return _message(line[:400], whole) if line.startswith(_STARTS) else None


@lru_cache(maxsize=1024)
def _message(line: str, whole: bool) -> Fault | None:
    """A driver that is gone says the same for each question."""
    low = line.lower()
    for needle, code, status in _MESSAGES:
        if needle in low:
            if not whole and code in _UNSPECIFIC:
                return None
            bus, index = _BUS_ID.search(line), _INDEX.search(line)
            return Fault(
                code,
                raw.clean(line),
                Value(status) if status is not None else Absent("NotInManual"),
                Value(bus[0]) if bus else Absent("NotSaid"),
                Value(int(index[1])) if index else Absent("NotSaid"),
            )
    return None


def code_of(status: int) -> str | None:
    """What an exit status of nvidia-smi means by its manual, None where that does not name it."""
    return next((code for _, code, said in _MESSAGES if said == status), None)


def faults(lines: Iterable[str], last: str = "") -> tuple[Fault, ...]:
    """All messages of some lines and of a last one that has no end."""
    ended = [found for line in lines if (found := fault(line))]
    return (*ended, cut) if (cut := fault(last, whole=False)) else tuple(ended)


def library_version(text: str) -> Fact[str]:
    """The library's version, that drivers from 510 on add to a mismatch."""
    found = _LIBRARY.search(text)
    return Value(found[1]) if found else Unknown("NotSaid")


def nothing(text: str, said: Iterable[Fault] = ()) -> Absent | Unknown:
    """The answer where not one GPU was found in `text`: no devices, or the reason why nothing is known."""
    for found in said:
        return Absent(found.code) if found.code == "NoDevices" else Unknown(found.code, found.said)
    return Unknown("UnreadableText", raw.clean(text[:2000], 120)) if text.strip() else Unknown("Empty")
