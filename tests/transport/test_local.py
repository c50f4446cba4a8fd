"""The node program as a child of the controller; and what importing the transports costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reconciler.errors import Garbled, Unreachable
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.transport.base import Transport
from reconciler.transport.local import LocalTransport
from reconciler.transport.record import RecordingTransport
from reconciler.transport.replay import ReplayTransport
from reconciler.transport.ssh import SshTransport
from tests.transport.servers import children
from tests.transport.test_ssh import says_hi

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

NODE = DesiredNode("localhost", SshAccess("localhost"), ())


def test_it_answers_and_leaves_nothing() -> None:
    earlier = programs()
    before, descriptors = set(threading.enumerate()), len(list(Path("/proc/self/fd").iterdir()))
    transport = LocalTransport()
    channel = transport.open(NODE, 20)
    assert channel.hello.uid == os.geteuid()
    assert says_hi(channel)
    assert channel.received > 100
    channel.close()
    channel.close()
    transport.close()
    assert not set(threading.enumerate()) - before  # what an earlier test left may end meanwhile
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    assert programs() == earlier


@pytest.mark.parametrize("python", ["/no/such/python3", "/etc/passwd"])
def test_no_python(python: str) -> None:
    transport = LocalTransport(python)
    with pytest.raises(Garbled, match="NoPython"):
        transport.open(NODE, 20)
    transport.close()


def test_what_is_not_python() -> None:
    transport = LocalTransport("/bin/false")
    with pytest.raises(Garbled) as caught:
        transport.open(NODE, 20)
    assert (caught.value.reason, caught.value.data["status"]) == ("ProgramEnded", 1)
    transport.close()


def test_a_child_that_dies_or_stands_still() -> None:
    earlier = programs()
    transport = LocalTransport()
    channel = transport.open(NODE, 20)
    (pid,) = programs() - earlier
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(Unreachable, match="DeadlinePassed"):
        says_hi_within(channel, 0.3)
    with pytest.raises(Unreachable, match="DeadlinePassed"):
        channel.request("begin", 0.5, content="x" * (1 << 20))  # more than a pipe holds
    assert time.monotonic() - began < 5
    with pytest.raises(Unreachable, match="ConnectionLost"):
        says_hi(channel)
    channel.close()
    assert programs() == earlier
    transport.close()


def programs() -> set[int]:
    """Node programs that run below this process."""
    return {pid for pid, name in children(os.getpid()).items() if name.startswith("python")}


def says_hi_within(channel: object, seconds: float) -> None:
    channel.request("probe", seconds, facts={})  # type: ignore[attr-defined]


def test_all_are_transports(tmp_path: Path) -> None:
    """For the type checker; and closing one that was never used is no error."""
    local: Transport = LocalTransport()
    all_of_them: list[Transport] = [local, SshTransport(), ReplayTransport(tmp_path), RecordingTransport(local)]
    before = set(threading.enumerate())
    for transport in all_of_them:
        transport.close()
        transport.close()
    assert not set(threading.enumerate()) - before


def test_importing_the_transports_imports_no_ssh_library() -> None:
    code = (
        "import sys, reconciler.transport.ssh, reconciler.transport.local; print(sorted({'paramiko','fabric'} & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout == "[]\n"
