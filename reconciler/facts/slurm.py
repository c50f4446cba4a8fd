"""Saved Slurm output about nodes: `scontrol show node` (lines or -o), sinfo (-N, -O, -R, --json) and what slurmctld logs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from reconciler.facts import raw, scalars, slurm_json, slurm_table, text
from reconciler.facts.slurm_node import Node, is_state, node
from reconciler.model.fact import Absent, Fact, Unknown, Value

_KEY = re.compile(r"\s([A-Z][A-Za-z]{0,40}(?:_[a-z]{1,20})?)=")
_FAILED = re.compile(r"Unable to contact slurm controller|slurm_load_\w+ error|Zero Bytes were transmitted", re.IGNORECASE)
_MISSING = re.compile(r"^Node \S+ not found$", re.MULTILINE)
_STATE = re.compile(r"[A-Za-z_+]{2,60}[*~#!%$@^-]{0,4}")
_JOBS = {"JOBID", "JobID", "JobIDRaw"}  # squeue, sacct
_TITLES = ("NODELIST", "HOSTNAMES", "NODE_NAME")
_GRES_USED = re.compile(r"[^\s(]+\(IDX:\S*\)(?:,\S+)?")
_LOG = re.compile(
    r"Setting node (?P<name>\S+) state to (?P<state>\S+) with reason: ?(?P<reason>.*)"
    r"|node (?P<name2>\S+) (?:state set to (?P<state2>\S+)|reason set to: ?(?P<reason2>.*))"
    r"|Nodes? (?P<name3>\S+) not responding, setting (?P<state3>DOWN)"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of `sinfo -R`. `truncated`: the reason fills its column to the last character, so more may follow."""

    reason: str
    truncated: bool
    user: Fact[str]
    timestamp: Fact[str]
    nodes: Fact[str]


@dataclass(frozen=True, slots=True)
class Slurm:
    """`nodes` in order, what could not be read in its place; one node may come several times (partitions).

    `states`: the different states as they are written, sorted. `version`: of the controller where the form says it.
    """

    nodes: tuple[Fact[Node], ...]
    reasons: tuple[Fact[Reason], ...]
    states: tuple[str, ...]
    version: Fact[str]


def _pairs(line: str) -> dict[str, str]:
    """` Key=value Key=value`: values may hold blanks and `=`, or nothing; a reason goes to the end of its line."""
    front, marked, reason = line.partition(" Reason=")
    found = {"Reason": reason.strip()} if marked else {}
    parts = _KEY.split(front)
    for key, value in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(key, value.strip())
    return found


def _scontrol(lines: list[str]) -> list[dict[str, str]]:
    nodes: list[dict[str, str]] = []
    for line in lines:
        said = _pairs(" " + line.strip())
        if "NodeName" in said:
            nodes.append(said)
        elif nodes:
            for key, value in said.items() if len(nodes[-1]) < 200 else ():
                nodes[-1].setdefault(key, value)
    return nodes


def _from_json(said: str) -> Fact[Slurm]:
    found = slurm_json.read(said)
    return Value(_summed(found.value.nodes, (), found.value.version)) if isinstance(found, Value) else found


@lru_cache(maxsize=4096)
def _like(rest: str, between: str) -> tuple[Fact[Node], str]:
    """A node without its name, by the cells of a row behind it, and its state; most nodes of a cluster are alike."""
    found = {"NodeName": "any", **_cells(rest.split(between)[:50])}
    return node(found) if "State" in found else Unknown("UnreadableRow", raw.clean(rest[:400], 120)), found.get("State", "")


def _cells(cells: list[str]) -> dict[str, str]:
    """What the shape of each cell says, `sinfo -O` with its padding."""
    found: dict[str, str] = {}
    for cell in map(str.strip, cells):
        if _GRES_USED.fullmatch(cell[:400]):
            found.setdefault("GresUsed", cell)
        elif cell.startswith(("gpu:", "(null)")):
            found.setdefault("Gres", cell)
        elif _STATE.fullmatch(cell) and is_state(cell):
            found.setdefault("State", cell)
        elif cell.isdigit():
            found.setdefault("CPUTot", cell)
    return found


def _from_rows(lines: list[str]) -> Fact[Slurm]:
    """Rows without header, the name first: `lxfoo1,down*`; a number there is that of a job."""
    nodes: list[Fact[Node]] = []
    states: set[str] = set()
    for line in lines:
        if line.startswith(_TITLES):
            continue
        between = "|" if "|" in line else ","
        name, _, rest = line.partition(between)
        like, state = _like(rest, between)
        name = name.strip()
        if isinstance(like, Value) and name and " " not in name and not name.isdigit() and len(name) < 256:
            nodes.append(Value(Node(name, *like.value[1:])))
            states.add(state)
        else:
            nodes.append(Unknown("UnreadableRow", raw.clean(line[:400], 120)))
    if not any(isinstance(found, Value) for found in nodes):
        return Unknown("NoNodes", raw.clean(lines[0][:400], 120))
    return Value(Slurm(tuple(nodes), (), tuple(sorted(states)), Unknown("NotShown")))


def _reason(line: str, starts: dict[str, int]) -> Fact[Reason]:
    """Fixed columns: a reason holds blanks, and is cut where its column ends."""
    ends = [*sorted(starts.values())[1:], len(line)]
    if len(line) <= ends[-2 if len(ends) > 1 else -1]:
        return Unknown("UnreadableRow", raw.clean(line[:400], 120))
    cells = {title: line[start:end].strip() for (title, start), end in zip(starts.items(), ends, strict=True)}
    reason = cells["REASON"]
    if not reason:
        return Unknown("UnreadableRow", raw.clean(line[:400], 120))
    user, timestamp, nodes = (
        Unknown("NotShown") if title not in cells else Value(cells[title]) if cells[title] else Unknown("Missing")
        for title in ("USER", "TIMESTAMP", "NODELIST")
    )
    return Value(Reason(reason, len(ends) > 1 and len(reason) >= ends[0] - 1, user, timestamp, nodes))


def _from_reasons(lines: list[str]) -> Fact[Slurm]:
    starts = {found[0]: found.start() for found in re.finditer(r"\S+", lines[0][:2000])}
    reasons = tuple(_reason(line, starts) for line in lines[1:] if line.strip())
    return Value(Slurm((), reasons, (), Unknown("NotShown")))


def _from_table(titles: list[str], lines: list[str]) -> Fact[Slurm]:
    """Rows below the header `lines[0]`; `sinfo -R -l` has states and reasons."""
    nodes, states = slurm_table.read(titles, lines[1:])
    if not nodes:
        return Unknown("NoNodes")
    reasons = _from_reasons(lines) if titles[0] == "REASON" and "|" not in lines[0] else None
    given = reasons.value.reasons if isinstance(reasons, Value) else ()
    return Value(Slurm(nodes, given, states, Unknown("NotShown")))


def _from_log(found: list[re.Match[str]]) -> Fact[Slurm]:
    """What slurmctld did to its nodes: the states it set, in order, and the last reason."""
    nodes: dict[str, dict[str, str]] = {}
    for said in found:
        listed = said["name"] or said["name2"] or said["name3"]
        state, reason = said["state"] or said["state2"] or said["state3"], said["reason"] or said["reason2"]
        for name in slurm_table.hosts(listed) or [listed]:
            fields = nodes.setdefault(name, {"NodeName": name})
            if state and len(fields.get("State", "")) < 1000:
                fields["State"] = "+".join(filter(None, (fields.get("State"), state)))
            if reason:
                fields["Reason"] = reason
    return Value(_summed(list(nodes.values()), (), Unknown("NotShown")))


def _summed(found: list[dict[str, str]], reasons: tuple[Fact[Reason], ...], version: Fact[str]) -> Slurm:
    states = sorted({state for fields in found if (state := fields.get("State"))})
    return Slurm(tuple(node(fields) for fields in found), reasons, tuple(states), version)


def parse(said: str) -> Fact[Slurm]:
    """The form is told by the text; a last line without end is not read.

    Unknown(ControllerUnreachable) and Absent(NoSuchNode) are Slurm's own answers.
    """
    clean = text.clean(said)
    lines = clean.split("\n")
    speaking = [line for line in lines if line.strip()]
    if absent := (scalars.no_command(speaking, "scontrol") or scalars.no_command(speaking, "sinfo")):
        return absent
    if failed := _FAILED.search(clean[:10_000]):
        return Unknown("ControllerUnreachable", failed[0])
    if clean.lstrip()[:1] == "{":
        return _from_json(clean)
    whole, cut = scalars.ended(clean)
    speaking = [line for line in whole if line.strip()]
    if not speaking:
        return cut[0] if cut else Unknown("NoText")
    if "NodeName=" in clean and (said_nodes := _scontrol(speaking)):
        return Value(_summed(said_nodes, (), Unknown("NotShown")))
    if _MISSING.search(clean[:10_000]):
        return Absent("NoSuchNode")
    for place, line in enumerate(speaking[:2]):  # sinfo -l puts the date in front
        if _JOBS & set(re.split(r"[\s,|]+", line.strip()[:2000])):
            return Unknown("NoNodes", raw.clean(line[:400], 120))
        if titles := slurm_table.columns(line):
            return _from_table(titles, speaking[place:])
    if speaking[0].startswith("REASON"):
        return _from_reasons(speaking)
    if logged := [found for line in speaking if (found := _LOG.search(line))]:
        return _from_log(logged)
    return _from_rows(speaking)
