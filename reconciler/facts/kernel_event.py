"""One line of a kernel log that says something about GPUs, PCI Express or the kernel's own end: what is known from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from reconciler.facts import kernel_trouble, raw
from reconciler.model.fact import Absent, Fact, Unknown, Value

LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")  # syslog(3), by number

# what syslog, journalctl, dmesg (-T, -H, -d, -x, -r, --time-format iso) and /dev/kmsg put in front, one after the other
_PREFIX = re.compile(
    r"\s*(?:\*\*"
    r"|<(?P<raw>\d{1,3})>"
    r"|(?P<facility>[a-z0-9]{1,12}) {0,8}:(?P<level>[a-z]{1,8}) {0,8}:"
    r"|(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\b"
    r"|(?P<syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)\b"
    r"|\[(?P<ctime>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})(?: <[ \d.]{1,20}>)?\]"
    r"|\[ {0,12}(?P<seconds>\d{1,12}\.\d{1,9})(?: <[ \d.]{1,20}>)?\]"
    r"|\[(?P<human>[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d)\]|\[ {0,8}\+\d{1,8}\.\d{1,9}\]"
    r"|\[ {0,8}[TC]\d{1,10}\]"
    r"|(?P<priority>\d{1,4}),\d{1,20},(?P<micros>\d{1,20}),[^;\n]{0,100};"
    r"|(?:[\w.-]{1,255} )?kernel:)"
)
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?\Z", re.IGNORECASE)
# A number or name that ends the line may be cut, so what follows it is part of these patterns.
# (PCI:0000:9b:00), (0000:9b:00), (PCI:0000:9b:00 GPU-I:03), (PCI:0000:05:00.0) of an NVSwitch; oldest drivers print none
_XID = re.compile(r"(S?)Xid(?: \(([^)\n]{1,80})\))?: (\d{1,6}),")
_PID = re.compile(r", pid='?(\d{1,10}|<unknown>)'?,")
_NAME = re.compile(r", name='?([^,\n]{1,64}?)'?,")
_CHANNEL = re.compile(r"\b(?:Ch|channel) (?:0x)?([0-9a-f]{8})\b", re.IGNORECASE)
_PCI = re.compile(r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE)
_VERSION = re.compile(r"\b\d{2,4}+(?:\.\d{1,4}+){1,2}+(?=\s)")
_HAS_VERSION = re.compile(r"has (?:NVRM: )?the version (\d{2,4}+(?:\.\d{1,4}+){1,2}+)[.,\s]")
_MINOR = re.compile(r"minor number (\d{1,4})\b")
_DEVICES = re.compile(r"for (\d{1,4}) device")
_TASK = re.compile(r"task (.{1,64}):(\d{1,10}) blocked for more than")
_SEVERITY = re.compile(r"severity=(\w{1,20})(?: \(([\w-]{1,12})\))?|(Un)?[Cc]orrect(?:ed|able)(?: \(([\w-]{1,12})\))? error")
NOT_SAID = Unknown("NotSaid")


@dataclass(frozen=True, slots=True)
class Event:
    """What one line says. What the line does not hold is Unknown(NotSaid).

    `kind`: xid, sxid, aer, dpc, gpu-lost, init-failed, probe-failed, api-mismatch, driver-loaded, gpu-uuid, rate-limited,
    hung-task, oops, panic, or of kernel_trouble: oom-kill, hardware-error, io-error, fs-error, link-down, nvme-error, mlx5-error.
    `device`: the disk or interface that those name. `line`: counted from 1. `time`: ISO 8601 as far as printed (no zone: the node's
    own), Unknown(NoYear) for syslog's. `boot_seconds`: since boot. `bus`: PCI domain:bus:device, `0000:9b:00`. `code`: Xid or SXid
    number. `severity` of a PCI Express error: corrected, nonfatal or fatal. `message`: the line without its prefixes, at most 300
    characters.
    """

    kind: str
    line: int
    time: Fact[str]
    boot_seconds: Fact[float]
    level: Fact[str]
    message: str
    bus: Fact[str] = NOT_SAID
    code: Fact[int] = NOT_SAID
    pid: Fact[int] = NOT_SAID
    process: Fact[str] = NOT_SAID
    channel: Fact[int] = NOT_SAID
    severity: Fact[str] = NOT_SAID
    versions: tuple[str, ...] = ()
    number: Fact[int] = NOT_SAID
    device: Fact[str] = NOT_SAID


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stood in front of a message, which begins at `end`."""

    time: Fact[str]
    boot_seconds: Fact[float]
    level: Fact[str]
    end: int


def prefix(line: str) -> Prefix:
    """All prefixes of a line, whatever their order; at most eight."""
    said: dict[str, str] = {}
    end = 0
    for _ in range(8):
        found = _PREFIX.match(line, end)
        if not found:
            break
        end = found.end()
        said.update({name: value for name, value in found.groupdict().items() if value is not None})
    return Prefix(_time(said), _seconds(said), _level(said), end)


def _time(said: dict[str, str]) -> Fact[str]:
    if "iso" in said:
        return Value(said["iso"].replace(",", ".").replace(" ", "T"))
    if "ctime" in said:
        try:
            return Value(datetime.strptime(said["ctime"], "%a %b %d %H:%M:%S %Y").isoformat())
        except ValueError:
            return Unknown("UnreadableTime", said["ctime"])
    dated = said.get("syslog") or said.get("human")
    return Unknown("NoYear", dated) if dated else NOT_SAID


def _seconds(said: dict[str, str]) -> Fact[float]:
    if "seconds" in said:
        return Value(float(said["seconds"]))
    return Value(int(said["micros"]) / 1e6) if "micros" in said else NOT_SAID


def _level(said: dict[str, str]) -> Fact[str]:
    number = said.get("raw") or said.get("priority")
    if number:
        return Value(LEVELS[int(number) & 7])  # the rest is the facility
    return Value(said["level"]) if said.get("level") in LEVELS else NOT_SAID


def address(printed: str) -> Fact[str]:
    """domain:bus:device in small letters of a printed PCI address, with or without domain and function."""
    found = _ADDRESS.match(printed)
    if not found:
        return Unknown("UnreadableAddress", raw.clean(printed, 80))
    domain, bus, device = found.groups()
    return Value(f"{(domain or '0000')[-4:]}:{bus}:{device}".lower())


def xid_head(line: str) -> re.Match[str] | None:
    """S of an SXid, printed address, code; None where the line is cut or garbled there."""
    return _XID.search(line)


def read_xid(line: str, number: int, head: re.Match[str] | None) -> Event:
    before = prefix(line)
    kind = "sxid" if "SXid" in line else "xid"
    message = raw.clean(line[before.end :])
    if not head:
        lost = Unknown("UnreadableLine")
        return Event(kind, number, before.time, before.boot_seconds, before.level, message, lost, lost)
    rest, where = head.end(), head[2]
    # each begins at the comma that ends the one before
    pid, name, channel = _PID.search(line, rest - 1), _NAME.search(line, rest - 1), _CHANNEL.search(line, rest)
    hidden = Unknown("NotKnownToDriver")  # the driver itself prints <unknown>
    return Event(
        kind, number, before.time, before.boot_seconds, before.level, message,
        bus=address(where.removeprefix("PCI:").split(" ")[0].rstrip(",")) if where else NOT_SAID,
        code=Value(int(head[3])),
        pid=NOT_SAID if not pid else Value(int(pid[1])) if pid[1].isdigit() else hidden,
        process=NOT_SAID if not name else hidden if name[1] == "<unknown>" else Value(name[1]),
        channel=Value(int(channel[1], 16)) if channel else NOT_SAID,
    )  # fmt: skip


def read(kind: str, line: str, number: int, around: str) -> Event | None:
    """Any other event; None where the line is only boot noise. `around`: lines before and after, of a message of several lines."""
    before = prefix(line)
    message = line[before.end :]
    bus, said = _bus(kind, message, around), NOT_SAID
    severity: Fact[str] = NOT_SAID
    device: Fact[str] = NOT_SAID
    pid: Fact[int] = NOT_SAID
    process: Fact[str] = NOT_SAID
    versions: tuple[str, ...] = ()
    count: Fact[int] = said
    if kind == "aer":
        severity = _severity(message)
        if isinstance(severity, Absent):
            return None
    elif kind == "api-mismatch":
        versions = tuple(_HAS_VERSION.findall(" ".join(around.split())))[:2]
    elif kind == "driver-loaded":
        versions = tuple(_VERSION.findall(message.partition("Module")[2]))[:1]
    elif kind in ("init-failed", "probe-failed"):
        found = (_MINOR if kind == "init-failed" else _DEVICES).search(message)
        count = Value(int(found[1])) if found else NOT_SAID
    elif kind == "hung-task" and (task := _TASK.search(message)):
        process, pid = Value(task[1]), Value(int(task[2]))
    elif kind in kernel_trouble.KINDS:
        if not (trouble := kernel_trouble.read(kind, message)):
            return None
        process, pid, device = trouble.process, trouble.pid, trouble.device
    return Event(
        kind, number, before.time, before.boot_seconds, before.level, raw.clean(message), bus,
        pid=pid, process=process, severity=severity, versions=versions, number=count, device=device,
    )  # fmt: skip


def _bus(kind: str, message: str, around: str) -> Fact[str]:
    """The last PCI address of the message: AER names the port first, then the device. A lost GPU may be named a line above."""
    if kind == "gpu-uuid":
        return address(message.partition("PCI:")[2].partition(": ")[0])
    found = _PCI.findall(message)
    if not found and kind == "gpu-lost":
        found = _PCI.findall(around.partition(message)[0])
    return address(found[-1]) if found else NOT_SAID


def _severity(message: str) -> Fact[str]:
    """Absent where the line tells of no error, such as `AER: enabled with IRQ 26`."""
    found = _SEVERITY.search(message)
    if not found:
        return Absent("NoError")
    words = (found[1] or ("Un" if found[3] else "") + "corrected").lower()
    grade = (found[2] or found[4] or "").lower().replace("-", "")
    if not words.startswith("un"):
        return Value("corrected")
    return Value(grade) if grade in ("fatal", "nonfatal") else Unknown("GradeNotSaid", raw.clean(found[0]))
