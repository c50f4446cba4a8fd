"""What NCCL and RCCL say with NCCL_DEBUG=INFO: versions, the network that they chose, warnings. Ranks and hosts may be mixed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_SAID = re.compile(r"\bNCCL (INFO|WARN|TRACE|ABORT) +(.*)")
_HEAD = re.compile(r"([^\s:()\[\]]{1,255}):[0-9]{1,10}:[0-9]{1,10} \[[0-9]{1,4}\] *(\S+:[0-9]{1,6})? *$")
_VERSION = re.compile(r"\b[NR]CCL version *:? *([0-9][0-9A-Za-z.+_-]*)")
_NET = re.compile(r"NET/(\w+) ?: Using ([^;]*?)(?:\[RO\])? *(?:; *OOB ([^:\s]+):\S*)?$")
_DEVICE = re.compile(r"\[[0-9]{1,4}\]([^\s\[\]]+)")
_NETWORK = re.compile(r"Using network (.+)")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (?:\[[0-9]+\])?([^:\s]+):")
_DRIVER = re.compile(r"cudaDriverVersion ([0-9]{4,6})")
_SETTING = re.compile(r"(NCCL_\w+) set by environment to (.*)")
_DISTANCE = re.compile(r"CUDA Dev ([0-9]{1,4})\[[0-9]{1,4}\], .*NIC distance : *(.*)")
_RANKS = re.compile(r"\brank [0-9]+ n[rR]anks ([0-9]{1,7})")
_ERROR = re.compile(r"NCCL error in: [^,]{1,300}, ([^,(]{1,200})")
_COMPLETION = re.compile(r"completion from peer (\S+) with (?:error|status=)[ ]?([0-9]{1,4}).*?(?:vendor err[ =]([0-9]{1,6})|$)")
# made by container and VPN software: no data of a job belongs there
_VIRTUAL = re.compile(r"(?:lxcbr|lxdbr|tailscale|docker|veth|virbr|br-|cni|flannel|cali|tun|tap|wg|zt|podman|lo$)")


@dataclass(frozen=True, slots=True)
class Net:
    """One kind of `NET/... : Using` line. IB devices are NAME:PORT/LAYER, sockets interface names; none: it uses nothing."""

    transport: str
    devices: tuple[str, ...]
    oob: Fact[str]


@dataclass(frozen=True, slots=True)
class Warned:
    """A WARN text, as often as it came. `where`: NCCL's file:line."""

    text: str
    where: Fact[str]
    count: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A work request that a peer's card ended with an error: 12 is retries exceeded (ibv_wc_status of libibverbs)."""

    peer: str
    status: int
    vendor_error: Fact[int]


@dataclass(frozen=True, slots=True)
class NcclLog:
    """All lists hold each thing once, in the order of the log.

    `version`, `transport`, `oob`: the one that all lines agree on, else Unknown(Several). `hcas` Absent(NoDevice): NCCL found none,
    whatever the NET/IB line says afterwards. `suspicious`: interfaces in use which containers or VPNs made. `distances`: GPU to
    NIC, by CUDA device. `inits_started` without `inits_complete`: ranks that hang or died.
    """

    version: Fact[str]
    versions: tuple[str, ...]
    transport: Fact[str]
    nets: tuple[Net, ...]
    hcas: Fact[tuple[str, ...]]
    ifaces: tuple[str, ...]
    suspicious: tuple[str, ...]
    oob: Fact[str]
    bootstrap: tuple[str, ...]
    hosts: tuple[str, ...]
    driver_cuda: Fact[str]
    ranks: Fact[int]
    settings: dict[str, str]
    distances: dict[str, str]
    warnings: tuple[Warned, ...]
    completions: tuple[Completion, ...]
    errors: tuple[str, ...]
    inits_started: int
    inits_complete: int


@dataclass(slots=True)
class _Found:
    versions: dict[str, None] = field(default_factory=dict)
    nets: dict[Net, None] = field(default_factory=dict)
    networks: dict[str, None] = field(default_factory=dict)
    bootstrap: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    drivers: dict[str, None] = field(default_factory=dict)
    ranks: dict[int, None] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    distances: dict[str, str] = field(default_factory=dict)
    warnings: dict[tuple[str, str], int] = field(default_factory=dict)
    errors: dict[str, None] = field(default_factory=dict)
    no_device: bool = False
    started: int = 0
    complete: int = 0


def _one(found: dict[str, None]) -> Fact[str]:
    if len(found) > 1:
        return Unknown("Several", raw.clean(", ".join(list(found)[:8])))
    return Value(next(iter(found))) if found else Unknown("NotSaid")


def _net(said: str) -> Net | None:
    """`NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>`: the address of an interface is left out."""
    found = _NET.match(said[:20_000])
    if not found:
        return None
    devices = _DEVICE.findall(found[2])
    if found[1] != "IB":
        devices = [device.partition(":")[0] for device in devices]
    return Net(found[1], tuple(devices), Value(found[3]) if found[3] else Unknown("NotSaid"))


def _network(found: _Found, said: str) -> None:
    """Lines about the network and the way to it."""
    if said.startswith("NET/IB") and "No device found" in said:
        found.no_device = True
    elif said.startswith("NET/") and (net := _net(said)):
        found.nets[net] = None
    elif network := _NETWORK.match(said):
        found.networks[network[1].strip()] = None
    elif bootstrap := _BOOTSTRAP.match(said):
        found.bootstrap[bootstrap[1]] = None


def _info(found: _Found, said: str) -> None:
    """An INFO text into what was found so far."""
    if said.startswith(("NET/", "Using network", "Bootstrap")):
        _network(found, said)
    elif said.endswith("Init START"):
        found.started += 1
    elif said.endswith("Init COMPLETE"):
        found.complete += 1
    elif setting := _SETTING.match(said):
        found.settings[setting[1]] = setting[2].strip().removesuffix(".")
    elif driver := _DRIVER.match(said):
        found.drivers[f"{int(driver[1]) // 1000}.{int(driver[1]) % 1000 // 10}"] = None
    elif distance := _DISTANCE.match(said[:400]):
        found.distances[distance[1]] = distance[2].strip()
    if " rank " in said and (ranks := _RANKS.search(said[:400])):
        found.ranks[int(ranks[1])] = None


def _other(found: _Found, line: str) -> None:
    """A line that NCCL did not prefix: its version, or the framework's words about an error."""
    if "CCL version" in line and (version := _VERSION.match(line)):
        found.versions[version[1]] = None
    if error := _ERROR.search(line[:2000]):
        found.errors[error[1].strip()] = None


def _wrapped(said: str, after: str) -> str:
    """The text of a completion error, which terminals break before its vendor's code."""
    if "Got completion" in said and "vendor err" not in said and "vendor err" in after and "NCCL" not in after:
        return f"{said} {after.strip()}"
    return said


def _take(found: _Found, line: str, after: str) -> None:
    """One line, and the next one, into what was found so far."""
    told = _SAID.search(line)
    if not told:
        _other(found, line)
        return
    said = told[2].strip()
    head = _HEAD.search(line[max(0, told.start() - 300) : told.start()])
    if head:
        found.hosts[head[1]] = None
    if told[1] == "WARN":
        warning = (raw.clean(_wrapped(said, after)[:1000]), head[2] or "" if head else "")
        found.warnings[warning] = found.warnings.get(warning, 0) + 1
    elif "CCL version" in said and (version := _VERSION.match(said)):
        found.versions[version[1]] = None
    else:
        _info(found, said)


def _completion(said: str) -> Completion | None:
    found = _COMPLETION.search(said)
    if not found:
        return None
    return Completion(found[1], int(found[2]), Value(int(found[3])) if found[3] else Unknown("Missing"))


def _summed(found: _Found) -> NcclLog:
    used = [net for net in found.nets if net.devices]
    hcas = tuple(dict.fromkeys(device for net in used if net.transport == "IB" for device in net.devices))
    ifaces = tuple(dict.fromkeys(device for net in used if net.transport != "IB" for device in net.devices))
    none: Fact[tuple[str, ...]] = Absent("NoDevice") if found.no_device else Unknown("NotSaid")
    ended = [completion for said, _ in found.warnings if (completion := _completion(said))]
    return NcclLog(
        version=_one(found.versions),
        versions=tuple(found.versions),
        transport=_one(found.networks or {net.transport: None for net in used}),
        nets=tuple(found.nets),
        hcas=Value(hcas) if hcas else none,
        ifaces=ifaces,
        suspicious=tuple(name for name in ifaces if _VIRTUAL.match(name)),
        oob=_one({net.oob.value: None for net in found.nets if isinstance(net.oob, Value)}),
        bootstrap=tuple(found.bootstrap),
        hosts=tuple(found.hosts),
        driver_cuda=_one(found.drivers),
        ranks=Value(max(found.ranks)) if found.ranks else Unknown("NotSaid"),
        settings=found.settings,
        distances=found.distances,
        warnings=tuple(Warned(said, Value(at) if at else Unknown("NotSaid"), n) for (said, at), n in found.warnings.items()),
        completions=tuple(dict.fromkeys(ended)),
        errors=tuple(found.errors),
        inits_started=found.started,
        inits_complete=found.complete,
    )


def parse(said: str) -> Fact[NcclLog]:
    """A log in which NCCL speaks; a last line that has no end yet is not read.

    Unknown(NoNcclLines) where it does not speak: NCCL_DEBUG was not set, or it is another log.
    """
    lines, _ = scalars.ended(text.clean(said))
    found = _Found()
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        if "CCL" in line:
            _take(found, line, after)
    log = _summed(found)
    heard = (found.versions, found.nets, found.networks, found.hosts, found.warnings, found.distances, found.errors, found.settings)
    return Value(log) if any(heard) else Unknown("NoNcclLines", raw.clean(said[:400], 120))
