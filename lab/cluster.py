"""The lab as a whole: up, down, and its nodes."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import cgroups, hostdeps, network, sysctls
from lab.config import HTTP_PORT, LabConfig
from lab.disk import mount_layer, unmount_below
from lab.errors import LabError, NotUpError, UsageError, nearest
from lab.images.base import base_image
from lab.images.faces import face_image
from lab.images.scratch import sweep
from lab.images.store import note_use
from lab.node import LabNode, spawn
from lab.nodespec import NodeSpec, default_names, parse_option
from lab.packages.repositories import repositories
from lab.shell import stage
from lab.ssh import ensure_key


class Lab:
    """A data centre on this machine. All methods act on what is really there, so any process may use any of them."""

    def __init__(self, config: LabConfig) -> None:
        self.config = config

    @classmethod
    def from_environment(cls) -> "Lab":
        return cls(LabConfig.from_environment())

    @property
    def identity(self) -> Path:
        """The private key that root, ops and nosudo on every node accept."""
        return self.config.identity

    @property
    def known_hosts(self) -> Path:
        return self.config.known_hosts

    @property
    def is_up(self) -> bool:
        served = all(cgroups.pids(self._group_of(server)) for server in ("http", "ntp"))
        return network.exists(self.config.bridge) and self.known_hosts.exists() and served

    @property
    def nodes(self) -> dict[str, LabNode]:
        """The nodes of the running lab by name, in order; empty where it is not up."""
        folders = sorted((self.config.state / "nodes").glob("*/spec.json"))
        found = [LabNode.load(self.config, path.parent) for path in folders]
        return {node.name: node for node in sorted(found, key=lambda node: node.spec.host_number)}

    def node(self, name: str) -> LabNode:
        """One node; NotUpError where the lab is down, UsageError for a name it does not have."""
        nodes = self.nodes
        if not nodes:
            raise NotUpError(f"lab {self.config.name} is not up: `python -m lab up`")
        if name not in nodes:
            raise UsageError(f"no node {name!r}; {nearest(name, nodes)}")
        return nodes[name]

    # ---- up

    def up(
        self,
        nodes: int = 3,
        debian: int = 0,
        options: Mapping[str, NodeSpec | str] | None = None,
        timeout: float = 180.0,
    ) -> None:
        """Start what is missing of gpu01.., deb01.. and the nodes in `options`; returns when what it started is ready.

        An option is a NodeSpec, or text such as "mem=6G,disk=host".
        """
        special = {k: parse_option(f"{k}:{v}") if isinstance(v, str) else v for k, v in (options or {}).items()}
        specs = {name: NodeSpec(name) for name in default_names(nodes, debian)} | special
        hostdeps.ensure(_flock(self.config.cache / ".lock"))
        with self._locked():
            present = self.nodes
            wanted = [present.get(name) or LabNode(self.config, spec) for name, spec in specs.items()]
            _refuse_changes(present, special)
            started = [node for node in wanted if not node.powered]
            if self.is_up and not started:
                return
            if not self.is_up:
                self._prepare()
            self._known_hosts({**present, **{node.name: node for node in wanted}}.values())
            with stage(f"boot {' '.join(node.name for node in started)}"):
                each(started, LabNode.start)
                each(started, lambda node: node.wait_ready(timeout))

    def _prepare(self) -> None:
        """Everything but nodes: keys, images, network, package server."""
        config = self.config
        config.state.mkdir(mode=0o755, parents=True, exist_ok=True)
        ensure_key(config.identity, f"reconcile-{config.name}")
        with _flock(config.cache / ".lock"):
            sweep(config.cache)
            repos = repositories(config.cache, config.gateway)
            base = base_image(config.cache)
            layers = {"base": base}
            layers["el9"] = face_image(config.cache, "el9", base, repos.rpms_os)
            layers["debian"] = face_image(config.cache, "debian", base, repos.rpms_os)
            note_use(config.state, [*layers.values(), *repos.by_url().values()])
        for name, image in layers.items():
            mount_layer(image, config.state / "layers" / name)
        sysctls.acquire(config.run, config.name)
        network.up(config)
        roots = [f"{name}={folder}" for name, folder in repos.by_url().items()]
        self._serve("http", "lab.httpd", config.gateway, str(HTTP_PORT), *roots)
        self._serve("ntp", "lab.ntpd", config.gateway)

    def _serve(self, name: str, module: str, *words: str) -> None:
        group = self._group_of(name)
        if not cgroups.pids(group):
            cgroups.create(group)
            spawn(self.config.state / name, module, group, *words)

    def _group_of(self, server: str) -> str:
        return f"{self.config.cgroup}/{server}"

    def _known_hosts(self, nodes: Iterable[LabNode]) -> None:
        keys = self.config.state / "hostkeys"
        lines = [f"{node.address} {ensure_key(keys / node.name, node.name)}\n" for node in nodes]
        partial = self.known_hosts.with_suffix(".new")
        partial.write_text("".join(lines))
        partial.rename(self.known_hosts)

    # ---- down

    def down(self) -> None:
        """Leave nothing: processes, mounts, links, namespaces, tables, groups, settings, state. No-op where down."""
        if os.geteuid() != 0:
            raise LabError("the lab needs root")
        config = self.config
        with self._locked():
            cgroups.kill(config.cgroup)
            unmount_below(config.state)
            network.down(config)
            cgroups.remove(config.cgroup)
            with _flock(config.cache / ".lock"):
                sweep(config.cache)
            shutil.rmtree(config.cache / "disks" / config.name, ignore_errors=True)
            sysctls.release(config.run, config.name)
            shutil.rmtree(config.state, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _flock(self.config.lock):
            yield

    # ---- looking

    def status(self) -> dict[str, Any]:
        """What is there, as plain values for JSON."""
        return {
            "name": self.config.name,
            "up": self.is_up,
            "network": self.config.network,
            "packages": self.config.url,
            "identity": str(self.identity),
            "knownHosts": str(self.known_hosts),
            "nodes": [node.status() for node in self.nodes.values()],
        }


def _refuse_changes(present: Mapping[str, LabNode], options: Mapping[str, NodeSpec]) -> None:
    changed = [name for name, spec in options.items() if name in present and present[name].spec != spec]
    if changed:
        raise UsageError(f"{', '.join(changed)} runs with other options: `python -m lab down` first")


def each(nodes: Iterable[LabNode], action: Callable[[LabNode], object]) -> None:
    """Do it on all nodes side by side; one node's failure does not stop the others, and all are reported."""
    with ThreadPoolExecutor(max_workers=32) as pool:
        running = {node.name: pool.submit(action, node) for node in nodes}
    errors = {name: error for name, future in running.items() if (error := future.exception())}
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise LabError("\n".join(f"{name}: {error}" for name, error in errors.items()))


@contextmanager
def _flock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
