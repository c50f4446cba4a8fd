"""What the ssh tests share: keys, users, one well-behaved server, and a check that nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from reconciler.transport.ssh import SshTransport
from tests.transport import servers
from tests.transport.servers import Sshd

# one pair for each run: two runs on a machine must not take each other's away
SUDOER, PLAIN = f"rec-sudo-{os.getpid()}", f"rec-plain-{os.getpid()}"
SUDOERS = Path(f"/etc/sudoers.d/reconcile-test-{os.getpid()}")


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """Readable by all: sshd reads the authorized keys as the user who logs in."""
    servers.install(servers.SSHD, "openssh-server")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reconcile-ssh-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def client_key(directory: Path) -> Path:
    return servers.keygen(directory / "client")


@pytest.fixture(scope="session")
def users() -> Iterator[None]:
    """One user who may use sudo without a password, and one who may not."""
    servers.install("sudo", "sudo")
    for user in (SUDOER, PLAIN):
        subprocess.run(("useradd", "--create-home", "--shell", "/bin/sh", "--password", "*", user), check=True)
    SUDOERS.write_text(f"{SUDOER} ALL=(ALL) NOPASSWD: ALL\n")
    SUDOERS.chmod(0o440)
    yield
    SUDOERS.unlink()
    for user in (SUDOER, PLAIN):
        subprocess.run(("userdel", "--remove", user), check=True, stderr=subprocess.DEVNULL)


Start = Callable[..., AbstractContextManager[Sshd]]


@pytest.fixture(scope="session")
def start(directory: Path, client_key: Path) -> Start:
    """`start(kinds, Option="value")`: a server of one's own, as a context manager."""
    return partial(servers.sshd, directory, client_key)


@pytest.fixture(scope="session")
def server(start: Start) -> Iterator[Sshd]:
    """A server with three host keys that does nothing wrong."""
    with start(servers.TYPES, MaxStartups="100", MaxSessions="100") as running:
        yield running


@pytest.fixture
def transport() -> Iterator[SshTransport]:
    """Closed after the test, which must have left no thread."""
    before = set(threading.enumerate())
    opened = SshTransport()
    yield opened
    opened.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    left = [t.name for t in set(threading.enumerate()) - before if "serve" not in t.name and "handle" not in t.name]
    assert left == []


@pytest.fixture
def script(directory: Path) -> Callable[[str], str]:
    """Write a shell script and get its path, for ForceCommand."""

    def write(text: str) -> str:
        with tempfile.NamedTemporaryFile("w", dir=directory, suffix=".sh", delete=False) as f:
            f.write("#!/bin/sh\n" + text)
        Path(f.name).chmod(0o755)
        return f.name

    return write
