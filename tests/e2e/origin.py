"""A site's origin: a bare repository with our hooks behind a real sshd, and how people push to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.site import Running, Site
from tests.transport import servers
from tests.transport.servers import Sshd

HOST = "git.example.net"  # a name for ssh alone: where it leads is in a configuration of its own
STATE_WAIT = 60.0  # seconds until a controller answers on its socket


@dataclass(frozen=True)
class Pushed:
    """A push that is over: git's exit status, what the pusher's terminal showed, and when each line came (seconds)."""

    code: int
    terminal: str
    lines: tuple[tuple[float, str], ...]
    seconds: float

    def at(self, words: str) -> float:
        """When the first line with these words came."""
        return next(when for when, line in self.lines if words in line)


@dataclass(frozen=True)
class Origin:
    """`bare`: where it lies; `url`: how it is reached by ssh, by whoever has `environment`."""

    site: Site
    bare: Path
    url: str
    environment: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A push in a process group of its own, as a terminal would start it. Its terminal is `stderr`."""
        # a shell's background job, which this may be, ignores the interrupt, and its children with it
        argv = ("env", "--default-signal=INT", "git", "-C", str(self.site.repo), "push", *(words or ("origin", "HEAD:main")))
        return subprocess.Popen(
            argv,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def push(self, *words: str) -> Pushed:
        began, lines = time.monotonic(), []
        with self.start(*words) as process:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append((time.monotonic() - began, line))
        terminal = "".join(line for _, line in lines)
        assert "Traceback" not in terminal, terminal
        return Pushed(process.returncode, terminal, tuple(lines), time.monotonic() - began)


@contextmanager
def server(folder: Path) -> Iterator[Sshd]:
    """A real sshd for Git, with the one key that may log in."""
    folder.mkdir(mode=0o755, exist_ok=True)
    servers.install(servers.SSHD, "openssh-server")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key = folder / "client"
    with servers.sshd(folder, key if key.exists() else servers.keygen(key)) as found:
        yield found


def origin(site: Site, folder: Path, sshd: Sshd, *hook: str) -> Origin:
    """A bare repository with hooks (`hook`: their options), and the site's repository with it as its origin. Nothing is pushed.

    A second call is another server for the same repository and the same URL.
    """
    bare = folder / "site.git"
    site.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    site.ok("hook", "install", str(bare), *hook)
    (folder / "known").write_text(sshd.line() + "\n")
    told = {"HostName": "127.0.0.1", "Port": sshd.port, "User": "root", "IdentityFile": sshd.client_key, "BatchMode": "yes"}
    told["UserKnownHostsFile"] = folder / "known"
    (folder / "ssh_config").write_text(f"Host {HOST}\n" + "".join(f"  {name} {value}\n" for name, value in told.items()))
    url = f"ssh://{HOST}{bare}"
    site.git("config", "remote.origin.url", url)
    return Origin(site, bare, url, {"GIT_SSH_COMMAND": f"ssh -F {folder / 'ssh_config'}"})


def started(site: Site, repository: str, *words: str, **environment: str) -> Running:
    """A controller that answers on its socket."""
    found = site.start("controller", "--repository", repository, *words, **environment)
    limit = time.monotonic() + STATE_WAIT
    while (asked := site.run("events")).code or "no controller listens" in asked.text:
        assert time.monotonic() < limit, asked.text
        if found.process.poll() is not None:
            raise AssertionError(found.result().text)
    return found


def ended(running: Running) -> int:
    """Its exit status after SIGTERM."""
    if running.process.poll() is None:
        running.send(signal.SIGTERM)
    return running.result().code


@contextmanager
def controlled(site: Site, repository: str, *words: str, **environment: str) -> Iterator[Running]:
    """The same, ended in good order afterwards where nobody killed it."""
    found = started(site, repository, *words, **environment)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            assert ended(found) == 0
