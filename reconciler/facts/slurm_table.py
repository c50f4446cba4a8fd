"""sinfo's tables with a header: `sinfo`, `sinfo -N -l`, `sinfo -o` with any columns. Lists of hosts are written out."""

from __future__ import annotations

import re

from reconciler.facts import raw
from reconciler.facts.slurm_node import Node, is_state, node
from reconciler.model.fact import Fact, Unknown, Value

# sinfo's titles under the names of scontrol, by which a node is read
_COLUMNS = {
    "NODELIST": "NodeName",
    "HOSTNAMES": "NodeName",
    "STATE": "State",
    "CPUS": "CPUTot",
    "MEMORY": "RealMemory",
    "FREE_MEM": "FreeMem",
    "GRES": "Gres",
    "GRES_USED": "GresUsed",
    "REASON": "Reason",
}
_BRACKET = re.compile(r"([^\[\]]*)\[([0-9,-]{1,2000})\](.*)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LISTED = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_MOST = 65_536  # nodes of one cell: Slurm's own limit of a cluster


def hosts(cell: str) -> list[str] | None:
    """`gpu[01,07-09],login1` host by host; None where it cannot be read."""
    found: list[str] = []
    for part in _LISTED.findall(cell):
        if part:
            expanded = _expanded(part)
            if expanded is None or len(found) + len(expanded) > _MOST:
                return None
            found += expanded
    return found or None


def _expanded(part: str) -> list[str] | None:
    bracket = _BRACKET.fullmatch(part)
    if not bracket:
        return [part] if not set("[] ") & set(part) else None
    behind = _expanded(bracket[3]) if bracket[3] else [""]
    numbers: list[str] = []
    for piece in bracket[2].split(","):
        found = _RANGE.fullmatch(piece)
        if not found or behind is None:
            return None
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < _MOST or (len(numbers) + last - first + 1) * len(behind) > _MOST:
            return None
        numbers += [str(number).zfill(len(found[1])) for number in range(first, last + 1)]
    return [f"{bracket[1]}{number}{rest}" for number in numbers for rest in behind or ()]


def columns(line: str) -> list[str] | None:
    """The titles of a header that names nodes and their state; None for another line."""
    titles = [cell.strip() for cell in line.split("|")] if "|" in line else line.split()
    return titles if "STATE" in titles and {"NODELIST", "HOSTNAMES"} & set(titles) else None


def _cells(line: str, titles: list[str]) -> list[str]:
    """A row's cells; a reason holds blanks, wherever it stands: what no other column takes."""
    if "|" in line:
        return [cell.strip() for cell in line.split("|")]
    behind = len(titles) - 1 - titles.index("REASON") if "REASON" in titles else 0
    cells = line.split(None, len(titles) - 1 - behind)
    return [*cells[:-1], *cells[-1].rsplit(None, behind)] if behind and cells else cells


def read(titles: list[str], lines: list[str]) -> tuple[tuple[Fact[Node], ...], tuple[str, ...]]:
    """The nodes of the rows below a header, and the states as they are written."""
    nodes: list[Fact[Node]] = []
    states: set[str] = set()
    for line in lines:
        cells = _cells(line, titles)
        fields = {_COLUMNS[title]: cell for title, cell in zip(titles, cells, strict=False) if title in _COLUMNS}
        names = hosts(fields.get("NodeName", "")) if len(cells) == len(titles) else None
        like = node({**fields, "NodeName": "any"})
        if names and isinstance(like, Value) and is_state(fields["State"]):
            nodes += [Value(Node(name, *like.value[1:])) for name in names]
            states.add(fields["State"])
        else:
            nodes.append(Unknown("UnreadableRow", raw.clean(line[:400], 120)))
    return tuple(nodes), tuple(sorted(states))
