"""Cluster: the machines of a site, what each shall have, and how a change goes over them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator

from reconciler.model import desired
from reconciler.model.base import Model, OrEmpty, about
from reconciler.model.desired import PackageManager, ResourceKind
from reconciler.model.types import (
    AbsolutePath,
    Account,
    AddressList,
    CountOrShare,
    FileMode,
    GpuCount,
    GpuModel,
    HostName,
    IpAddress,
    JumpHost,
    Keep,
    KeyPath,
    MirrorUrl,
    Name,
    NodeList,
    PackageName,
    PackageState,
    Port,
    RepositoryPath,
    Switch,
    UnitName,
    WheelhousePlace,
    refuse,
)


def _one_stack(value: object) -> object:
    if isinstance(value, dict):
        raise refuse("versions-by-tier")
    return value


def _location(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


class Ssh(Model):
    """How the controller reaches a node. Defaults: root, 22, no jump, the agent's keys, known_hosts."""

    user: Account | None = about(None, "default root; another user works through sudo -n")
    port: Port | None = about(None, "default 22")
    proxy_jump: JumpHost | None = about(None, "[user@]host[:port], as in ssh_config")
    identity: KeyPath | None = about(None, "private key on the controller: absolute, or ~/...")
    known_hosts: RepositoryPath | None = about(None, "host keys, a file in the repository; default known_hosts")


class ManagedFile(Model):
    """A file of the nodes. `source` may come from a farther layer (spec, profile), but has to come from one."""

    later: ClassVar[frozenset[str]] = frozenset({"template", "secret"})
    source: RepositoryPath | None = about(None, "file in the repository, copied as it is")
    owner: Account | None = about(None, "default root")
    group: Account | None = about(None, "default root")
    mode: FileMode | None = about(None, "octal; default 0644")
    restart: tuple[UnitName, ...] | None = about(None, "units that are restarted when this file was written")


class ManagedUnit(Model):
    """A systemd unit of the nodes. What is left out stays as it is found."""

    source: RepositoryPath | None = about(None, "file in the repository: the unit's /etc/systemd/system/NAME")
    enabled: Switch | None = about(None, "whether it is started at boot")
    state: Literal["started", "stopped"] | None = about(None, "whether it runs now")


class Gpus(Model):
    """The GPUs of a node: a node that has none says nothing."""

    later: ClassVar[frozenset[str]] = frozenset({"mig", "ecc", "powerLimit", "smClock"})
    model: GpuModel | None = about(None, "what nvidia-smi -L prints, without NVIDIA")
    count: GpuCount | None = about(None, "how many the PCI bus has to show")
    interconnect: Literal["pcie", "nvlink", "nvswitch"] | None = about(None, "default pcie; nvswitch brings the fabric manager")
    stand_in: Switch | None = about(None, "a lab's stand-in: what is proved there serves that cluster only; default false")


class Mirrors(Model):
    """Where a site keeps its copies. `null` removes."""

    later: ClassVar[frozenset[str]] = frozenset({"os", "epel", "pytorch"})
    nvidia: MirrorUrl | None = about(None, "of NVIDIA's repositories; the distribution's path is appended")
    pypi: MirrorUrl | None = about(None, "of the Python package index (PEP 503), for pin and fetch; default: pip's configuration")
    wheels: WheelhousePlace | None = about(None, "the wheelhouse as a node sees it: a folder, or the URL of its listing")


class Policy(Model):
    """What may be done about a difference."""

    later: ClassVar[frozenset[str]] = frozenset(get_args(ResourceKind))
    default: desired.Policy | None = about(None, "observe: show and record, never write; enforce (default): change")


class NodeSettings(Model):
    """What a node can have, said in spec, a profile, the node or overrides: the nearest wins, null removes."""

    later: ClassVar[frozenset[str]] = frozenset(
        {
            "tier", "rdma", "network", "time", "timezone", "mounts", "directories",
            "repositories", "kernelArgs", "kernelModules", "sysctl", "users", "firewall", "selinux", "env",
            "labels", "remediation", "cordon", "suspend",
        }
    )  # fmt: skip
    versions: Annotated[Name | None, BeforeValidator(_one_stack)] = about(None, "name of the Versions that is the stack")
    gpus: Gpus | None = about(None, "the node's GPUs; what has them takes the stack's driver")
    ssh: Ssh | None = about(None, "how the node is reached")
    package_manager: PackageManager | None = about(None, "default: the distribution's")
    mirrors: Mirrors | None = about(None, "the site's copies of public origins")
    packages: dict[PackageName, PackageState | None] | None = about(None, "OS packages: a version, present or absent")
    files: dict[AbsolutePath, ManagedFile | None] | None = about(None, "files, by their path on the node")
    environments: tuple[Name, ...] | None = about(
        None, "Python environments of the stack; default: all on GPU nodes, none elsewhere"
    )
    hosts: dict[HostName, IpAddress | None] | None = about(None, "/etc/hosts beside the nodes: name and IP address")
    units: dict[UnitName, ManagedUnit | None] | None = about(None, "systemd units, by their full name")
    policy: Policy | None = about(None, "what may be done about a difference")


class Node(NodeSettings):
    """One key of `nodes`: a node, or a range of nodes that are alike."""

    address: AddressList | None = about(None, "address to connect to; default: the name, by DNS")
    profile: Name | None = about(None, "one of spec.profiles")


class Rollout(Model):
    """How a change goes over the nodes."""

    later: ClassVar[frozenset[str]] = frozenset({"soak", "maxFailures"})
    canary: Name | None = about(None, "node that is changed first; default: the first of each profile")
    max_unavailable: CountOrShare | None = about(None, "at once: a count, or a share such as 10%; default 1")
    approve: tuple[ResourceKind, ...] | None = about(None, "kinds whose changes wait for `reconcile approve` in the controller")


class EnvironmentLocation(Model):
    """Where environments are built. `shared` is short for {type: shared}."""

    type: Literal["node", "shared"] = about(..., "node, or shared: /opt/ai/env is one mount")
    builder: Name | None = about(None, "of shared: the node that builds; default: the first that has an environment")


class ClusterSpec(NodeSettings):
    """A site."""

    later: ClassVar[frozenset[str]] = NodeSettings.later | {
        "dataRoot", "maintenanceWindows", "gates", "waivers", "slurm",
        "monitoring", "gateway", "backups",
    }  # fmt: skip
    environment_location: Annotated[EnvironmentLocation | None, BeforeValidator(_location)] = about(
        None, "node (default): each node builds; shared: one node builds in a mount that all see"
    )
    keep_environments: Keep | None = about(None, "builds that stay of each environment; default 3")
    nodes: dict[NodeList, Annotated[Node, OrEmpty()]] = about(..., "by name or by Slurm host list", min_length=1)
    profiles: dict[Name, Annotated[NodeSettings, OrEmpty()]] = about({}, "settings that a node takes by name")
    overrides: dict[NodeList, Annotated[NodeSettings, OrEmpty()]] = about({}, "exceptions, by host list; later lines win")
    rollout: Rollout | None = about(None, "how a change goes over the nodes")
