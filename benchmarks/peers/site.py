"""The endpoints and the tools in front of them: lab nodes, the relay, every tool prepared for the same work."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import work
from benchmarks.peers.installed import Peers
from benchmarks.peers.meter import Distance, Meter
from benchmarks.peers.tools import Ansible, Ours, Pyinfra, Tool
from benchmarks.peers.work import Endpoint
from lab import Lab

SSH = 22


@dataclass(frozen=True)
class Site:
    """A lab that is up, and where its nodes are reached."""

    lab: Lab
    folder: Path
    endpoints: tuple[Endpoint, ...]
    distance: Distance
    meter: Meter
    peers: Peers

    @property
    def known_hosts(self) -> Path:
        """The nodes' keys under the relay's ports."""
        return self.folder / "known_hosts"

    def tools(self, count: int) -> tuple[Tool, ...]:
        """Each tool on the first `count` nodes. The names in /etc/hosts are of all nodes, whatever the count is."""
        endpoints, names = self.endpoints[:count], work.names_of(self.endpoints)
        folders = {name: self.folder / str(count) / name for name in ("reconcile", "ansible", "mitogen", "pyinfra")}
        for folder in (*folders.values(), folders["reconcile"] / "repo"):
            folder.mkdir(parents=True, exist_ok=True)
        identity = self.lab.identity
        ours = Ours(folders["reconcile"], endpoints).prepared(identity, self.known_hosts.read_text(), names)
        _committed(folders["reconcile"] / "repo")
        ansible = Ansible(folders["ansible"], self.peers, endpoints)
        mitogen = Ansible(folders["mitogen"], self.peers, endpoints, mitogen=True)
        pyinfra = Pyinfra(folders["pyinfra"], self.peers, endpoints)
        return ours, *(tool.prepared(identity, self.known_hosts, names) for tool in (ansible, mitogen, pyinfra))

    def ours(self) -> Ours:
        """Ours on every node, prepared: for `apply`."""
        ours = self.tools(len(self.endpoints))[0]
        assert isinstance(ours, Ours)
        return ours


def _committed(repo: Path) -> None:
    if (repo / ".git").exists():
        return
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.net", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message", "the work")):
        subprocess.run(("git", *words), cwd=repo, check=True)


@contextlib.contextmanager
def site(peers: Peers, nodes: int) -> Iterator[Site]:
    """A fresh lab of this many nodes behind a relay; nothing of it is left."""
    lab = Lab.from_environment()
    try:
        lab.up(nodes=nodes)
        targets = [(node.address, SSH) for node in lab.nodes.values()]
        # a short path: the kept connections of ssh are sockets below it
        with tempfile.TemporaryDirectory(prefix="peers-") as folder, contextlib.closing(Distance(targets)) as distance:
            ends = tuple(Endpoint(n.name, n.address, port) for n, port in zip(lab.nodes.values(), distance.ports, strict=True))
            found = Site(lab, Path(folder), ends, distance, Meter(lab, distance), peers)
            found.known_hosts.write_text(_behind(lab.known_hosts.read_text(), ends))
            yield found
    finally:
        lab.down()


def _behind(known_hosts: str, endpoints: Sequence[Endpoint]) -> str:
    """The lab's lines `ADDRESS TYPE KEY`, for where the relay answers in their place."""
    keys = dict(line.split(" ", 1) for line in known_hosts.splitlines())
    return "".join(f"[127.0.0.1]:{e.port} {keys[e.address]}\n" for e in endpoints)
