"""RDMA links and the network devices over them: `rdma link`, as text of old and new iproute2 or as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.facts import keyed, raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

# `link mlx5_0/1 state ...`; old iproute2 `0/1: mlx5_0/1: state ...`; before 2020 also `1/1: mlx5_0/1: subnet_prefix ...`
_LINK = re.compile(r"\s{0,8}(?:link |[0-9]{1,5}/[0-9]{1,3}: )([A-Za-z][\w.-]{0,63}/[0-9]{1,3}):?(?: |\Z)")
# the kernel's ib_port_state, as iproute2 prints it
_STATES = frozenset({"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"})
_KEYS = frozenset({"state", "physical_state", "netdev", "netdev_index", "subnet_prefix", "lid", "sm_lid", "lmc"})


@dataclass(frozen=True, slots=True)
class Link:
    """One port. States as printed: ACTIVE, DOWN, LINK_UP, DISABLED. LIDs are Absent(Unassigned) while no subnet manager gave one.

    `netdev`: Absent(NoNetdev) for InfiniBand, and where the network device lives in another namespace. `layer`: InfiniBand,
    Ethernet, or Unknown(NotSaid): a line without a subnet prefix and without a network device.
    """

    state: Fact[str]
    physical_state: Fact[str]
    netdev: Fact[str]
    layer: Fact[str]
    subnet_prefix: Fact[str]
    lid: Fact[int]
    sm_lid: Fact[int]


@dataclass(frozen=True, slots=True)
class Links:
    """All links by `device/port`, in the order of the text, and which are what. `down`: in a known state other than ACTIVE."""

    links: Mapping[str, Link]
    active: tuple[str, ...]
    down: tuple[str, ...]
    ethernet: tuple[str, ...]
    with_netdev: tuple[str, ...]
    cut: bool


def parse(output: str) -> Fact[Links]:
    """Every link of the text, its pairs in any order. Unknown(NoLinks): an empty output of a saved command proves nothing."""
    whole, last = text.ended(output)
    rows: dict[str, dict[str, str]] = {}
    cut = False
    if answer := keyed.objects(whole + last):
        cut = answer[1]
        for item in answer[0]:
            said = {key: str(value)[:200] for key, value in item.items() if value is not None}
            if said.get("ifname"):
                rows.setdefault(f"{said['ifname']}/{said.get('port', '?')}", said)
    else:
        for line in whole.split("\n"):
            if found := _LINK.match(line):
                rows.setdefault(found[1], keyed.pairs(line[found.end() :], _KEYS))
    if not rows:
        return Unknown("NoLinks", raw.clean(output[:1000]))
    return Value(_links({name: _link(said) for name, said in rows.items()}, cut))


def _link(said: Mapping[str, str]) -> Link:
    prefix, netdev = keyed.word(said, "subnet_prefix"), keyed.word(said, "netdev")
    layer: Fact[str] = Unknown("NotSaid")
    if isinstance(prefix, Value):
        layer = Value("InfiniBand")
    elif isinstance(netdev, Value):
        layer = Value("Ethernet")
    # netdev is the last pair: a line that is cut before it has no physical state either
    whole = "physical_state" in said
    no_lid = Absent("NotInfiniBand")
    state = keyed.word(said, "state")
    if isinstance(state, Value) and state.value not in _STATES:
        state = Unknown("UnreadableCell", raw.clean(state.value, 80))
    return Link(
        state=state,
        physical_state=keyed.word(said, "physical_state"),
        netdev=netdev if "netdev" in said or not whole else Absent("NoNetdev"),
        layer=layer,
        subnet_prefix=prefix,
        lid=no_lid if layer == Value("Ethernet") else keyed.lid(said, "lid"),
        sm_lid=no_lid if layer == Value("Ethernet") else keyed.lid(said, "sm_lid"),
    )


def _links(links: Mapping[str, Link], cut: bool) -> Links:
    return Links(
        links=links,
        active=tuple(name for name, link in links.items() if link.state == Value("ACTIVE")),
        down=tuple(name for name, link in links.items() if isinstance(link.state, Value) and link.state.value != "ACTIVE"),
        ethernet=tuple(name for name, link in links.items() if link.layer == Value("Ethernet")),
        with_netdev=tuple(name for name, link in links.items() if isinstance(link.netdev, Value)),
        cut=cut,
    )
