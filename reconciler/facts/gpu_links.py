"""How the GPUs of a running node are joined: paths, NVLinks, and what they may do with each other's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.facts import nvsmi_live, nvsmi_nvlink, topology
from reconciler.facts.live import LiveFact
from reconciler.facts.nvsmi_nvlink import LinkedGpu, Links
from reconciler.facts.topology import Topology
from reconciler.model.fact import Absent, Fact, Raw, Unknown, Value


@dataclass(frozen=True, slots=True)
class PeerToPeer:
    """What `nvidia-smi topo -p2p` says of reading and of writing: `OK` or a word of its legend for each pair."""

    read: Fact[Topology]
    write: Fact[Topology]


def parse_topology(raws: tuple[Raw, ...]) -> Fact[Topology]:
    """`nvidia-smi topo -m`."""
    text = nvsmi_live.output(raws[0])
    return topology.parse(text.value) if isinstance(text, Value) else text


def parse_links(raws: tuple[Raw, ...]) -> Fact[Links]:
    """`nvidia-smi nvlink -s`. Absent(NoLinks) where no GPU has one; links that are all inactive are links."""
    text = nvsmi_live.output(raws[0])
    if not isinstance(text, Value):
        return text
    if not text.value.strip():  # nvidia-smi prints nothing for GPUs that cannot have any
        return Absent("NoLinks")
    found = nvsmi_nvlink.parse(text.value)
    if isinstance(found, Value) and not found.value.faults and all(map(_bare, found.value.gpus)):
        return Absent("NoLinks")
    return found


def _bare(gpu: LinkedGpu) -> bool:
    """Its line is there and nothing follows."""
    return isinstance(gpu.gpu, Value) and gpu.links == Unknown("Missing")


def parse_p2p(raws: tuple[Raw, ...]) -> Fact[PeerToPeer]:
    """Both directions; one that failed does not lose the other."""
    read, write = (nvsmi_live.output(raws[0], number) for number in (0, 1))
    if not isinstance(read, Value) and not isinstance(write, Value):
        return read
    return Value(PeerToPeer(_matrix(read), _matrix(write)))


def _matrix(text: Fact[str]) -> Fact[Topology]:
    return topology.parse(text.value) if isinstance(text, Value) else text


def stable_p2p(value: Any) -> Any:
    return {way: _links(value[way]) for way in ("read", "write")}


def _links(matrix: Any) -> Any:
    return matrix.get("links", matrix) if isinstance(matrix, dict) else matrix


TOPOLOGY = LiveFact("topology", lambda about: (nvsmi_live.ask(("topo", "-m")),), parse_topology, slow=True, gpu=True)
NVLINK = LiveFact("nvlink", lambda about: (nvsmi_live.ask(("nvlink", "-s")),), parse_links, slow=True, gpu=True)
P2P = LiveFact(
    "p2p",
    lambda about: (nvsmi_live.ask(("topo", "-p2p", "r"), ("topo", "-p2p", "w")),),
    parse_p2p,
    stable_p2p,
    slow=True,
    gpu=True,
)
