"""Real sshd processes on loopback, and small servers that misbehave."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.model.desired import DesiredNode, SshAccess

SSHD = "/usr/sbin/sshd"
TYPES = ("ed25519", "rsa", "ecdsa")


def install(binary: str, package: str) -> None:
    """Make sure that `binary` is here."""
    if shutil.which(binary) is None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(("apt-get", "-q", "update"), check=True, env=environment, stdout=subprocess.DEVNULL)
        argv = ("apt-get", "-q", "-y", "--no-install-recommends", "install", package)
        subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL)


def keygen(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    subprocess.run(("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)), check=True)
    return path


def fingerprint(public: Path) -> str:
    """As OpenSSH's own tool prints it."""
    done = subprocess.run(("ssh-keygen", "-l", "-f", str(public)), check=True, capture_output=True, text=True)
    return done.stdout.split()[1]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def children(pid: int) -> dict[int, str]:
    """All processes below `pid` with their names, from /proc."""
    parents: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                before, _, after = (entry / "stat").read_text().rpartition(")")
            except (FileNotFoundError, ProcessLookupError):  # ended since it was listed
                continue
            names[int(entry.name)] = before.partition("(")[2]
            parents.setdefault(int(after.split()[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    todo = [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found.update((child, names[child]) for child in below)
        todo += below
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # ended by itself since it was listed
            os.kill(pid, signal.SIGKILL)


@dataclass
class Sshd:
    """One running server. `keys` are its host keys by type."""

    port: int
    directory: Path
    client_key: Path
    keys: dict[str, Path]
    process: subprocess.Popen[bytes] = field(repr=False)
    log: list[str] = field(default_factory=list, repr=False)

    def line(self, kind: str = "ed25519") -> str:
        return f"[127.0.0.1]:{self.port} " + " ".join(self.keys[kind].with_suffix(".pub").read_text().split()[:2])

    def access(self, **changes: object) -> SshAccess:
        base: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "identity": str(self.client_key),
            "known_hosts": (self.line(),),
        }
        return SshAccess(**{**base, **changes})  # type: ignore[arg-type]

    def node(self, **changes: object) -> DesiredNode:
        return DesiredNode("node", self.access(**changes), ())

    def logged(self, text: str) -> int:
        return sum(text in line for line in self.log)

    def sessions(self) -> list[int]:
        """The server's own processes for connections, without what they started."""
        return [pid for pid, name in children(self.process.pid).items() if name.startswith("sshd")]


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """The processes stand still, their sockets stay open: what a hung machine looks like from outside."""
    standing = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # sshd's helper for the login ends by itself soon after it
            os.kill(pid, signal.SIGSTOP)
            standing.append(pid)
    assert standing
    try:
        yield
    finally:
        for pid in standing:
            with contextlib.suppress(ProcessLookupError):  # a stopped process can be killed: its client hung up
                os.kill(pid, signal.SIGCONT)


@contextmanager
def sshd(
    directory: Path, client_key: Path, kinds: tuple[str, ...] = ("ed25519",), within: tuple[str, ...] = (), **options: str
) -> Iterator[Sshd]:
    """A server with host keys and a configuration of its own, ended by its pid. `within`: a command that execs it."""
    here = Path(tempfile.mkdtemp(dir=directory))
    here.chmod(0o755)  # sshd's helper for logins is another user
    keys = {kind: keygen(here / f"host_{kind}", kind) for kind in kinds}
    settings = {
        "ListenAddress": "127.0.0.1",
        "PidFile": "none",
        "AuthorizedKeysFile": str(client_key.with_suffix(".pub")),
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "PermitRootLogin": "prohibit-password",
        "LogLevel": "VERBOSE",
        **options,
    }
    lines = [f"{name} {value}" for name, value in settings.items()] + [f"HostKey {path}" for path in keys.values()]
    (here / "config").write_text("\n".join(lines) + "\n")
    server, reader = _listening(here, client_key, keys, within)
    try:
        yield server
    finally:
        kill([*children(server.process.pid), server.process.pid])
        server.process.wait()
        reader.join(20)


def _listening(here: Path, client_key: Path, keys: dict[str, Path], within: tuple[str, ...]) -> tuple[Sshd, threading.Thread]:
    """The server once it listens. A port that was free when asked for may be somebody else's by then: another is taken."""
    while True:
        port = free_port()
        argv = (*within, SSHD, "-D", "-e", "-p", str(port), "-f", str(here / "config"))
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd="/")
        server = Sshd(port, here, client_key, keys, process)
        listening = threading.Event()
        reader = threading.Thread(target=_follow, args=(server, listening), daemon=True)
        reader.start()
        assert listening.wait(20), server.log
        if any("Server listening" in line for line in server.log):
            return server, reader
        process.wait()
        assert any("Address already in use" in line for line in server.log), server.log


def _follow(server: Sshd, listening: threading.Event) -> None:
    assert server.process.stderr
    with server.process.stderr as stderr:
        for line in stderr:
            server.log.append(line.decode(errors="replace").rstrip())
            if "Server listening" in server.log[-1]:
                listening.set()
    listening.set()


@contextmanager
def fake(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server on a free port that hands each connection to `serve` in a thread of its own."""
    threads: list[threading.Thread] = []
    open_ones: list[socket.socket] = []

    def handle(connection: socket.socket) -> None:
        try:
            serve(connection)
        except OSError:
            return  # the client hung up: that is what most of these tests want
        finally:
            connection.close()

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            threads.append(threading.Thread(target=handle, args=(connection,), daemon=True))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = threading.Thread(target=accept, args=(listener,), daemon=True)
        acceptor.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for connection in open_ones:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # already closed by its handler
            for thread in threads:
                thread.join(20)
