"""Forms of `ip link` that the corpus has no sample of."""

from __future__ import annotations

import pytest

from reconciler.facts.ip_link import Interfaces, parse
from reconciler.model.fact import Absent, Unknown, Value

LO = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000"
DETAIL = "link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00"


def parsed(text: str) -> Interfaces:
    found = parse(text)
    assert isinstance(found, Value)
    return found.value


@pytest.mark.parametrize(
    "text",
    [f"{LO}\n", f"{LO}\n    {DETAIL}\n", f"{LO}\\    {DETAIL}\n", f"7: {LO}\n7:     {DETAIL}\n"],
    ids=["one line", "two lines", "ip -o", "srun -l"],
)
def test_lo(text: str) -> None:
    found = parsed(text)
    assert found.names == ("lo",)
    assert found.interfaces["lo"].mtu_bytes == Value(65536)


def test_a_cut_line_is_not_down() -> None:
    found = parsed("2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq state DOW")
    assert (found.states["eth0"], found.down) == (Unknown("Missing"), ())
    assert parsed("2: eth0: <BROADCAST,UP> mtu 15").mtus_bytes["eth0"] == Unknown("Missing")


def test_cut_json_keeps_what_is_whole() -> None:
    found = parsed('[{"ifname":"lo","mtu":65536,"operstate":"UNKNOWN"},{"ifname":"et')
    assert (found.names, found.cut) == (("lo",), True)


def test_no_such_device() -> None:
    assert parse('Device "eth9" does not exist.\n') == Absent("NoSuchDevice")
