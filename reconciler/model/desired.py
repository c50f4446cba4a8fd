"""What Git declares, with every reference resolved: values that the planner reads and nothing else can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PackageManager = Literal["dnf", "apt"]
Policy = Literal["observe", "enforce"]  # record what differs and write nothing, or close the difference
ResourceKind = Literal["GpuDriver", "Hostname", "HostsEntries", "Package", "File", "PythonEnvironment", "SystemdUnit"]
Scalar = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in the repository something is declared. Line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class HostnameSpec:
    """The node's static host name."""

    hostname: str


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """An OS package: `ensure` present (any version), absent, exact (`version`, with or without epoch and release), or prefix
    (`version` ends with `.*` or `-*`). `locked`: the whole version that the stack's lock chose of what meets `version`."""

    name: str
    ensure: Literal["present", "absent", "exact", "prefix"]
    version: str | None = None
    locked: str | None = None


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A regular file. `repository` marks a package repository definition: it is written before packages are installed.

    `restart`: units that have to be started again once it was written.
    """

    path: str
    content: bytes
    owner: str = "root"
    group: str = "root"
    mode: int = 0o644
    repository: bool = False
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostsSpec:
    """What /etc/hosts says of the cluster: lines of `ADDRESS NAME`, each name once. One text: every node of a cluster has it."""

    lines: str


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """A systemd unit; None: that is left as it is.

    `content`: of /etc/systemd/system/NAME. `drop_ins`: paths of declared files that are drop-ins, of any unit.
    """

    name: str
    content: bytes | None = None
    enabled: bool | None = None
    state: Literal["started", "stopped"] | None = None
    drop_ins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonEnvironmentSpec:
    """A Python environment as its lock says. `digest` is the lock's (hex SHA-256), `requirements` its text without comments.

    `versions`: each distribution and its version; `pins`: those that people chose, which have to import. `wheelhouse`: folder or
    URL as the node sees it. `keep`: builds that stay. `shared`: its folder is one mount that several nodes see; `builder`: the
    other node that builds it there.
    """

    name: str
    python: str
    digest: str
    requirements: str
    versions: tuple[tuple[str, str], ...]
    pins: tuple[str, ...]
    wheelhouse: str | None = None
    keep: int = 3
    shared: bool = False
    builder: str | None = None


@dataclass(frozen=True, slots=True)
class GpuDriverSpec:
    """NVIDIA's GPU driver. `version`: exact, or `580.*` for any of a branch. `packages`: all that have its version.

    `stream`: of dnf's module nvidia-driver. `gpus`: how many the PCI bus has to show, None where nobody said.
    """

    version: str
    packages: tuple[PackageSpec, ...]
    stream: str | None = None
    gpus: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(package.name for package in self.packages)


Spec = GpuDriverSpec | HostnameSpec | HostsSpec | PackageSpec | FileSpec | PythonEnvironmentSpec | UnitSpec


@dataclass(frozen=True, slots=True, order=True)
class ResourceId:
    """A resource kind and the instance's name on its node: `Package/tmux`, `File//etc/motd`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One declared resource. `distribution` limits it to nodes of that distribution; `manager` to those of that package manager."""

    id: ResourceId
    spec: Spec
    origin: Origin
    distribution: str | None = None
    manager: PackageManager | None = None


@dataclass(frozen=True, slots=True)
class SshAccess:
    """How the controller reaches a node.

    `known_hosts` are OpenSSH lines; `jump` is `[user@]host[:port]`; `identity` a key file of the controller.
    """

    host: str
    port: int = 22
    user: str = "root"
    jump: str | None = None
    identity: str | None = None
    known_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """One node of the cluster and what it shall have. `manager` None: the distribution's own. `distributions` empty: any."""

    name: str
    access: SshAccess
    resources: tuple[Resource, ...]
    profile: str | None = None
    manager: PackageManager | None = None
    stack: str | None = None
    distributions: tuple[str, ...] = ()
    policy: Policy = "enforce"


@dataclass(frozen=True, slots=True)
class Rollout:
    """`max_unavailable` is a count (`2`) or a share of the nodes (`10%`); `canary` None: the first node of each profile.

    `approve`: kinds of resources whose changes the controller carries out only once a person approved them.
    """

    canary: str | None = None
    max_unavailable: str = "1"
    approve: tuple[ResourceKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """The Git commit of a desired state; `commit` None for a folder outside Git. `dirty`: read from a work tree with changes."""

    commit: str | None
    summary: str = ""
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class DesiredState:
    """A cluster as declared. `digest` is over everything that was read (manifests and the files they name), hex SHA-256."""

    cluster: str
    revision: Revision
    digest: str
    nodes: Mapping[str, DesiredNode]
    rollout: Rollout = field(default_factory=Rollout)
