"""How GPUs and NICs of a node are joined: `nvidia-smi topo -m`, and `nvidia-smi topo -p2p` as its own kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from reconciler.facts import raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

# the words of nvidia-smi's own legend, nearest first; NV# is a bond of # NVLinks
_DISTANCE = ("PIX", "PXB", "PHB", "NODE", "SYS")
_PATH = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC")
_P2P = re.compile(r"X|OK|CNS|GNS|TNS|NS|DR|NA|U")
# peers of one matrix; P2P words that no link matrix has
_P2P_ONLY = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR"})
_COLUMN = re.compile(r"(?:GPU|NIC)\d+|mlx\d_(?:[a-z]+_?)?\d+")
_GPU = re.compile(r"GPU\d+\Z")
_LEGEND = re.compile(r"\s*(NIC\d+):\s*(.*?)\s*\Z")
# what the kernel and udev name RDMA devices: mlx5_0, ibp12s0, rocep1s0f0, mlx5_bond_1. Fragments of the matrix look otherwise
_DEVICE = re.compile(r"(?=\D*\d)[a-z][\w.-]*\Z", re.ASCII)
_TAIL = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_SHOWN = 6  # NIC names in one cell of a report


@dataclass(frozen=True, slots=True)
class Row:
    """One GPU or NIC: its path to each column, and where it is near. Affinities are lists of CPUs or NUMA nodes as printed."""

    paths: Mapping[str, Fact[str]]
    cpu_affinity: Fact[str]
    numa_affinity: Fact[str]
    gpu_numa_id: Fact[str]


@dataclass(frozen=True, slots=True)
class Topology:
    """The matrix. `kind`: `paths` (topo -m) or `p2p` (topo -p2p, cells are states, not paths).

    `links`: `0-1` -> word of a GPU pair; Unknown(Asymmetric) where its two cells differ. `link_counts`: pairs by word.
    `nvlinks`: NVLinks of each GPU pair where all pairs have the same number. `narrower_pairs`: joined by fewer NVLinks than the
    widest pair of the node (a lost link, or the design of a V100 board). `numa`: one node a GPU. `nearest_nics`: GPU -> `PIX:
    mlx5_0,mlx5_1`, a NIC whose name is lost by its column. `tails`: what stands behind the paths of a GPU row.
    `missing_rows`: columns without a row, as in a cut text.
    """

    kind: str
    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    rows: Mapping[str, Row]
    missing_rows: tuple[str, ...]
    links: Mapping[str, Fact[str]]
    link_counts: Mapping[str, int]
    nvlinks: Fact[int]
    narrower_pairs: tuple[tuple[str, str], ...]
    numa: tuple[Fact[int], ...]
    nic_names: Mapping[str, Fact[str]]
    corrupt_names: tuple[str, ...]
    nearest_nics: Mapping[str, str]
    tails: Mapping[str, str]
    header_glued: bool


def parse(output: str) -> Fact[Topology]:
    """The first matrix of the text. Absent(NoDevices) where nvidia-smi says so, Unknown(NoMatrix) where there is none."""
    whole, last = text.ended(output)
    lines = whole.split("\n")
    for index, line in enumerate(lines):
        if _is_header(line):
            return _matrix(line, lines[index + 1 :])
    if any("No devices were found" in line for line in (*lines, last)):
        return Absent("NoDevices")
    return Unknown("NoMatrix", raw.clean(output[:2000]))


def _is_header(line: str) -> bool:
    """Starts with a GPU, and no cell follows: a header that lost its indent looks like the row of GPU0."""
    if line.lstrip()[:3] != "GPU":
        return False
    words = line.split(None, 2)
    if not _COLUMN.match(words[0]) or ":" in words[0]:
        return False
    return len(words) == 1 or not (_PATH.fullmatch(words[1]) or _P2P.fullmatch(words[1]))


def _matrix(header: str, body: list[str]) -> Fact[Topology]:
    before, _, _ = header.partition("CPU Aff")
    columns, glued = _columns(before)
    if not columns:
        return Unknown("NoMatrix", raw.clean(header))
    glued = glued or "AffinityNUMA" in header or (len(before) < len(header) and not before[-1:].isspace())
    titles = tuple(title for title in _TAIL if title in header)
    found: dict[str, tuple[list[str], list[str]]] = {}
    for line in body:
        if line.startswith("Legend:") or _is_header(line):
            break
        name, cells, tail = _cells(line, len(columns))
        if name in columns and cells and name not in found:
            found[name] = (cells, tail)
    if not found:
        return Unknown("NoRows", raw.clean(header))
    p2p = any(cell in _P2P_ONLY for cells, _ in found.values() for cell in cells) or any("= Status Ok" in line for line in body)
    return Value(_topology(columns, titles, found, _legend(columns, body), glued, p2p))


def _columns(before: str) -> tuple[tuple[str, ...], bool]:
    """The names of the columns, and whether some stand without a blank between them."""
    names: list[str] = []
    glued = False
    for word in before.split():
        parts = _COLUMN.findall(word)
        if len(parts) > 1 and "".join(parts) == word:
            names += parts
            glued = True
        else:
            names.append(word)
    return tuple(dict.fromkeys(names)), glued


def _cells(line: str, count: int) -> tuple[str, list[str], list[str]]:
    """Name, paths and tail of a row. Cells of the tail are kept apart where the text still has its tabs: some are empty."""
    if line.count("\t") >= count:
        parts = [part.strip() for part in line.split("\t")]
        tail = parts[count + 1 :]
    else:
        parts = line.split(None, count + 1)
        tail = parts[count + 1].split() if len(parts) > count + 1 else []
    return (parts[0], parts[1 : count + 1], tail) if parts else ("", [], [])


def _legend(columns: tuple[str, ...], body: list[str]) -> dict[str, Fact[str]]:
    """Device name of each NIC column. nvidia-smi overwrites names with pieces of the matrix where there are many NICs."""
    said: dict[str, str] = {}
    for line in body:
        if "NIC" in line and (found := _LEGEND.match(line)):
            said.setdefault(found[1], found[2])
    names: dict[str, Fact[str]] = {}
    for column in columns:
        if _GPU.match(column):
            continue
        if not column.startswith("NIC"):
            names[column] = Value(column)  # old drivers put the device's name over the column
        elif column not in said:
            names[column] = Unknown("Missing")
        else:
            good = _DEVICE.match(said[column])
            names[column] = Value(said[column]) if good else Unknown("CorruptName", raw.clean(said[column]))
    return names


def _topology(
    columns: tuple[str, ...],
    titles: tuple[str, ...],
    found: dict[str, tuple[list[str], list[str]]],
    names: dict[str, Fact[str]],
    glued: bool,
    p2p: bool,
) -> Topology:
    words = _P2P if p2p else _PATH
    # only GPUs have affinities: without any cell there, a NIC's are empty and those of a GPU were cut off
    spare = {name: [] if _GPU.match(name) else [""] for name in found}
    rows = {name: _row(columns, titles, cells, tail or spare[name], words) for name, (cells, tail) in found.items()}
    gpus = tuple(column for column in columns if _GPU.match(column))
    links = {f"{a[3:]}-{b[3:]}": _link(rows, a, b) for a, b in combinations(gpus, 2)}
    known = [link.value for link in links.values() if isinstance(link, Value)]
    return Topology(
        kind="p2p" if p2p else "paths",
        gpus=gpus,
        nics=tuple(names),
        rows=rows,
        missing_rows=tuple(column for column in columns if column not in rows),
        links=links,
        link_counts=dict(Counter(known)),
        nvlinks=Absent("NotPaths") if p2p else _nvlinks(links),
        narrower_pairs=_narrower(gpus, links),
        numa=tuple(_node(rows[gpu].numa_affinity) if gpu in rows else Unknown("Missing") for gpu in gpus),
        nic_names=names,
        corrupt_names=tuple(nic for nic, name in names.items() if isinstance(name, Unknown) and name.why == "CorruptName"),
        nearest_nics={gpu: near for gpu in gpus if gpu in rows and (near := _nearest(rows[gpu], names))},
        tails={gpu: " ".join(" ".join(found[gpu][1]).split()) for gpu in gpus if gpu in found},
        header_glued=glued,
    )


def _row(columns: tuple[str, ...], titles: tuple[str, ...], cells: list[str], tail: list[str], words: re.Pattern[str]) -> Row:
    paths: dict[str, Fact[str]] = {}
    for index, column in enumerate(columns):
        if index >= len(cells) or not cells[index]:
            paths[column] = Unknown("Missing")
        elif words.fullmatch(cells[index]):
            paths[column] = Value(cells[index])
        else:
            paths[column] = Unknown("UnreadableCell", raw.clean(cells[index]))
    return Row(paths, *_affinities(titles, tail))


def _affinities(titles: tuple[str, ...], tail: list[str]) -> list[Fact[str]]:
    """CPU affinity, NUMA affinity, GPU NUMA ID; Unknown(UnclearCells) where cells are glued or blanks hide an empty one."""
    if titles == _TAIL and len(tail) > len(titles) and not tail[2]:
        tail = tail[:2] + tail[3:]  # nvidia-smi prints two tabs before the GPU NUMA ID
    if len(tail) > len(titles) and not any(tail[len(titles) :]):
        tail = tail[: len(titles)]
    answers: list[Fact[str]] = []
    for title in _TAIL:
        if title not in titles:
            answers.append(Absent("NoColumn"))
        elif not any(tail):
            answers.append(Absent("Empty") if tail else Unknown("Missing"))
        elif len(tail) != len(titles):
            answers.append(Unknown("UnclearCells", raw.clean(" ".join(tail))))
        else:
            cell = tail[titles.index(title)]
            answers.append(Absent("NotApplicable") if cell == "N/A" else Value(cell) if cell else Absent("Empty"))
    return answers


def _node(affinity: Fact[str]) -> Fact[int]:
    if not isinstance(affinity, Value):
        return affinity
    if affinity.value.isascii() and affinity.value.isdigit() and len(affinity.value) < 6:
        return Value(int(affinity.value))
    return Unknown("SeveralNodes", affinity.value)


def _link(rows: dict[str, Row], one: str, other: str) -> Fact[str]:
    """The word of a GPU pair from its two cells; one is enough where the other row is not there."""
    there = rows[one].paths[other] if one in rows else Unknown("Missing")
    back = rows[other].paths[one] if other in rows else Unknown("Missing")
    if isinstance(there, Value) and isinstance(back, Value) and there != back:
        return Unknown("Asymmetric", f"{there.value} {back.value}")
    return there if isinstance(there, Value) else back


def _width(link: Fact[str]) -> int | None:
    """NVLinks of a pair; None for a path over PCIe and where it is not known."""
    if isinstance(link, Value) and link.value.startswith("NV") and len(link.value) < 8:
        return int(link.value[2:])
    return None


def _nvlinks(links: dict[str, Fact[str]]) -> Fact[int]:
    widths = {_width(link) for link in links.values()}
    if not links:
        return Absent("OneGPU")
    if len(widths) == 1 and (width := widths.pop()) is not None:
        return Value(width)
    if any(isinstance(link, Unknown) for link in links.values()):
        return Unknown("SomePairsUnknown")
    return Absent("NoNVLink") if widths <= {None} else Absent("PairsDiffer")


def _narrower(gpus: tuple[str, ...], links: dict[str, Fact[str]]) -> tuple[tuple[str, str], ...]:
    widths = {pair: width for pair, link in zip(combinations(gpus, 2), links.values(), strict=True) if (width := _width(link))}
    return tuple(pair for pair, width in widths.items() if width < max(widths.values()))


def _nearest(row: Row, names: dict[str, Fact[str]]) -> str:
    """The shortest path of a GPU to a NIC and the NICs it leads to; empty where a path is not known: it may be the shortest."""
    if not all(isinstance(row.paths[nic], Value) for nic in names):
        return ""
    for word in _DISTANCE:
        near = [nic for nic in names if row.paths[nic] == Value(word)]
        if near:
            said = [name.value if isinstance(name := names[nic], Value) else nic for nic in near[:_SHOWN]]
            return f"{word}: {','.join(said)}" + ("..." if len(near) > _SHOWN else "")
    return ""
