"""A link that goes silent: the node is behind a virtual cable that can be cut, and nobody says goodbye."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from reconciler.errors import Unreachable
from reconciler.transport import connect, link
from reconciler.transport.ssh import SshTransport
from tests.transport.conftest import Start
from tests.transport.test_ssh import says_hi

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

HERE, THERE = "198.51.100.1", "198.51.100.2"  # a range for documentation: no real network has it


def ip(*argv: str) -> None:
    subprocess.run(("ip", *argv), check=True)


class Cable:
    """A network namespace and the cable to it. Names are this process's own, and new each time."""

    numbers = itertools.count()

    def __init__(self) -> None:
        number = f"{os.getpid()}x{next(self.numbers)}"
        self.name, self.near, self.far = (f"r{kind}{number}" for kind in "nab")
        ip("netns", "add", self.name)
        ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.name)
        ip("addr", "add", f"{HERE}/30", "dev", self.near)
        ip("link", "set", self.near, "up")
        ip("-n", self.name, "addr", "add", f"{THERE}/30", "dev", self.far)
        ip("-n", self.name, "link", "set", self.far, "up")

    @property
    def within(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        ip("-n", self.name, "link", "set", self.far, "down")

    def remove(self) -> None:
        ip("link", "delete", self.near)
        ip("netns", "delete", self.name)


@pytest.fixture
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.remove()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of seconds in place of half a minute."""
    monkeypatch.setattr(connect, "DEAD_LINK", 2)
    monkeypatch.setattr(link, "KEEPALIVE", 1)
    monkeypatch.setattr(link, "POLL", 0.5)


@pytest.mark.usefixtures("quick")
def test_a_cut_cable_is_noticed_long_before_the_deadline(transport: SshTransport, start: Start, cable: Cable) -> None:
    with start(within=cable.within, ListenAddress=THERE) as server:
        line = server.line().replace("127.0.0.1", THERE)
        channel = transport.open(server.node(host=THERE, known_hosts=(line,)), 20)
        assert says_hi(channel)
        cable.cut()
        facts = {"s": [{"do": "run", "argv": ["sleep", "1"], "deadline": 60}]}
        began = time.monotonic()
        with pytest.raises(Unreachable, match="ConnectionLost"):
            channel.request("probe", 60, facts=facts)
        assert time.monotonic() - began < 20
        channel.close()


@pytest.mark.usefixtures("quick")
def test_an_idle_channel_is_noticed_too(transport: SshTransport, start: Start, cable: Cable) -> None:
    """Nothing is asked: only the keepalive has something to miss an acknowledgement for."""
    with start(within=cable.within, ListenAddress=THERE) as server:
        line = server.line().replace("127.0.0.1", THERE)
        channel = transport.open(server.node(host=THERE, known_hosts=(line,)), 20)
        cable.cut()
        reader = channel._reader
        reader.join(20)
        assert not reader.is_alive()
        with pytest.raises(Unreachable, match="ConnectionLost"):
            channel.request("probe", 60, facts={})
        channel.close()


def test_a_node_that_is_switched_off_times_out(transport: SshTransport, start: Start, cable: Cable) -> None:
    with start(within=cable.within, ListenAddress=THERE) as server:
        node = server.node(host=THERE)
        cable.cut()
        with pytest.raises(Unreachable) as caught:
            transport.open(node, 1.0)
    assert caught.value.reason in {"ConnectTimedOut", "NoRoute"}
