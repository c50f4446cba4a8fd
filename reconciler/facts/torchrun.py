"""How ranks failed, as torchrun (torch elastic) reports it at the end of its log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_BEGIN = re.compile(r"(?:^|\s)\[[0-9]{1,7}\]:$")
_FIELD = re.compile(r"(?:^|\s)(time|host|rank|exitcode|error_file|traceback) *: (.*)$")
_RANK = re.compile(r"([0-9]{1,7})(?: \(local_rank: ([0-9]{1,7})\))?")
_EXIT = re.compile(r"(-?[0-9]{1,5})(?: \(pid: ([0-9]{1,10})\))?")
_EXITED = re.compile(r"failed \(exitcode: (-?[0-9]{1,5})\) local_rank: ([0-9]{1,7}) \(pid: ([0-9]{1,10})\)")
_FAILED = re.compile(r"(?:^|\s)(\S+) FAILED$")
_SIGNALLED = re.compile(r"Signal [0-9]{1,3} \((SIG[A-Z0-9+-]{1,12})\)")
_RULE = re.compile(r"(?:-{20,}|={20,}|\*{20,})$")
_TAG = re.compile(r"\[(?:default|rank)[0-9]{1,6}\]: ?")  # torchrun's own, with --tee or --redirects
# signal(7), Linux on x86 and ARM: what kills ranks
_SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 15: "TERM"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One rank. `exit_code` is negative for a signal; `time` is the node's local time; `host` may not be its name in the inventory.

    Absent(NotASignal): it exited by itself. Absent(NoErrorFile): the program does not record its exception.
    """

    rank: Fact[int]
    local_rank: Fact[int]
    host: Fact[str]
    time: Fact[str]
    exit_code: Fact[int]
    pid: Fact[int]
    signal: Fact[str]
    error_file: Fact[str]
    traceback: Fact[str]


@dataclass(frozen=True, slots=True)
class Exit:
    """The agent's own line about the first process of its node that failed."""

    exit_code: int
    local_rank: int
    pid: int


@dataclass(frozen=True, slots=True)
class Report:
    """All failures of all reports in the log, in its order; `root` is the first observed: of several nodes' the earliest."""

    program: Fact[str]
    root: Fact[Failure]
    failures: tuple[Failure, ...]
    exits: tuple[Exit, ...]


@dataclass(slots=True)
class _Found:
    programs: list[str] = field(default_factory=list)
    blocks: list[dict[str, str]] = field(default_factory=list)
    roots: list[dict[str, str]] = field(default_factory=list)
    exits: dict[Exit, None] = field(default_factory=dict)
    in_root: bool = False
    in_block: bool = False


def _pair(pattern: re.Pattern[str], fields: dict[str, str], key: str) -> tuple[Fact[int], Fact[int]]:
    """`6 (local_rank: 6)`, `-6 (pid: 123)`: a number, and one in brackets."""
    if not fields.get(key):
        return Unknown("Missing", key), Unknown("Missing", key)
    found = pattern.fullmatch(fields[key])
    if not found:
        return scalars.strange(fields[key]), scalars.strange(fields[key])
    return Value(int(found[1])), Value(int(found[2])) if found[2] else Unknown("Missing", key)


def _signal(code: Fact[int], traceback: str) -> Fact[str]:
    if told := _SIGNALLED.search(traceback[:400]):
        return Value(told[1])
    if not isinstance(code, Value):
        return code
    if code.value >= 0:
        return Absent("NotASignal")
    name = _SIGNALS.get(-code.value)
    return Value(f"SIG{name}") if name else Unknown("UnknownSignal", str(-code.value))


def _failure(fields: dict[str, str]) -> Failure:
    rank, local = _pair(_RANK, fields, "rank")
    code, pid = _pair(_EXIT, fields, "exitcode")
    return Failure(
        rank=rank,
        local_rank=local,
        host=scalars.wanted(fields, "host"),
        time=scalars.wanted(fields, "time"),
        exit_code=code,
        pid=pid,
        signal=_signal(code, fields.get("traceback", "")),
        error_file=Absent("NoErrorFile") if fields.get("error_file") == "<N/A>" else scalars.wanted(fields, "error_file"),
        traceback=scalars.wanted(fields, "traceback"),
    )


def _take(found: _Found, line: str) -> None:
    """One line: the fields of a failure follow `[0]:`, up to the next rule; launchers may put their names in front."""
    end = line[-1:]
    if end == ":" and _BEGIN.search(line[-200:]):
        block: dict[str, str] = {}
        found.blocks.append(block)
        if found.in_root:
            found.roots.append(block)
        found.in_block = True
    elif end in "-=*" and _RULE.search(line[-100:]):
        found.in_block = found.in_root = False
    elif found.in_block and (told := _FIELD.search(line[:4000])):
        found.blocks[-1].setdefault(told[1], told[2].strip())
    elif line.lstrip().startswith(("Root Cause:", "Root Cause (first observed failure)")) or "Root Cause (first observed" in line:
        found.in_root, found.in_block = True, False
    elif end == "D" and (failed := _FAILED.search(line[-300:])):
        found.programs.append(failed[1])
    elif "exitcode:" in line and (exited := _EXITED.search(line[:2000])):
        found.exits[Exit(int(exited[1]), int(exited[2]), int(exited[3]))] = None


def _root(found: _Found) -> Fact[Failure]:
    """Times are 2026-06-08_19:04:45, which sort; one without a time comes last."""
    if not found.roots:
        return Unknown("Missing", "Root Cause")
    return Value(_failure(min(found.roots, key=lambda fields: fields.get("time", "~"))))


def parse(said: str) -> Fact[Report]:
    """A log with torchrun's report; Unknown(NoReport) without one: the log may be cut, or nothing failed."""
    lines, _ = scalars.ended(text.clean(said))
    found = _Found()
    for line in lines:
        if line:
            _take(found, (_TAG.sub("", line, count=1) if line[:1] == "[" else line).rstrip())
    blocks = [_failure(block) for block in found.blocks if block]
    if not (blocks or found.exits):
        return Unknown("NoReport", raw.clean(said[-400:], 120))
    program: Fact[str] = Value(found.programs[0]) if found.programs else Unknown("Missing")
    return Value(Report(program, _root(found), tuple(blocks), tuple(found.exits)))
