"""The work that every tool gets: 15 resources in 13 tasks, 20 facts, and the drift that each has to see. Data, said once.

Two jobs: PLAN compares the resources with the nodes, FACTS reads and shows the facts.

A task is what one line of a peer's playbook manages; several packages of one wish are one task, as people write it for every tool.
Written out as our manifests, as Ansible playbooks, and as JSON that the pyinfra deploys read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PLAN, FACTS_PART = "plan", "facts"
PARTS = (PLAN, FACTS_PART)
PRESENT = ("numactl-2.0.19-3.el9", "tmux", "htop")
ABSENT = ("telnet",)
UNITS: Mapping[str, bool] = {"sshd.service": True, "nftables.service": False, "systemd-networkd.service": False}
FILES: Mapping[str, tuple[str, str]] = {  # path: content, mode
    "/etc/motd": ("This node is managed from Git.\n", "0644"),
    "/etc/profile.d/site.sh": ("".join(f"export SITE_{n:02}=value-{n}\n" for n in range(20)), "0644"),
    "/etc/sysctl.d/90-site.conf": ("vm.max_map_count = 1048576\nnet.core.rmem_max = 67108864\nvm.swappiness = 1\n", "0644"),
    "/etc/security/limits.d/90-site.conf": ("* soft memlock unlimited\n* hard memlock unlimited\n* - nofile 1048576\n", "0644"),
    "/etc/modprobe.d/site.conf": ("options nvidia NVreg_RestrictProfilingToAdminUsers=0\nblacklist nouveau\n", "0644"),
    "/etc/site/nodes.conf": ("".join(f"rank{n:03} = node{n:03}.example.net:29500 slots=8\n" for n in range(80)), "0640"),
}
HOSTNAME, HOSTS, PACKAGES, REMOVED = "hostname", "/etc/hosts", "packages", "removed packages"
TASKS = (HOSTNAME, HOSTS, PACKAGES, REMOVED, *FILES, *UNITS)
RESOURCES = 2 + len(PRESENT) + len(ABSENT) + len(FILES) + len(UNITS)
MARKS = ("# BEGIN reconcile", "# END reconcile")

FACTS = (
    "hostname",
    "distribution",
    "distribution version",
    "kernel",
    "architecture",
    "processors",
    "memory GiB",
    "processor",
    "eth0 address",
    "eth0 MTU",
    "lo MTU",
    "packages",
    "version of glibc",
    "version of numactl",
    "version of tmux",
    "version of htop",
    "sshd.service running",
    "sshd.service enabled",
    "lab-kmsg.service running",
    "lab-kmsg.service enabled",
)
# which of our facts hold these twenty; each is asked and shown whole
OUR_FACTS = ("hostname", "os-release", "kernel", "hardware", "links", "packages-rpm", "units")

# a command on a node, and the one task that has to see it
DRIFT: tuple[tuple[str, str], ...] = (
    ("echo 'edited by hand' >> /etc/motd", "/etc/motd"),
    ("chmod 0600 /etc/profile.d/site.sh", "/etc/profile.d/site.sh"),
    ("rm /etc/modprobe.d/site.conf", "/etc/modprobe.d/site.conf"),
    ("sed -i '/ nas01$/d' /etc/hosts", HOSTS),
    ("rpm -e --quiet htop", PACKAGES),
    ("dnf -q -y install telnet", REMOVED),
    ("systemctl enable --quiet nftables.service", "nftables.service"),
    ("hostname another", HOSTNAME),
)


@dataclass(frozen=True)
class Endpoint:
    """A node as the controller reaches it: through the relay. `address` is the node's own."""

    name: str
    address: str
    port: int


def task_of(resource: str) -> str:
    """The task that one of our resources belongs to: `Package/tmux` -> packages."""
    kind, _, name = resource.partition("/")
    if kind == "Package":
        return REMOVED if name in ABSENT else PACKAGES
    return {"Hostname": HOSTNAME, "HostsEntries": HOSTS}.get(kind, name)


def names_of(endpoints: Iterable[Endpoint]) -> dict[str, str]:
    """What /etc/hosts shall hold: every node of the lab and two servers."""
    return {**{e.name: e.address for e in endpoints}, "nas01": "10.20.1.40", "mirror": "10.20.1.41"}


def _package(name: str) -> tuple[str, str]:
    """The name and the wish as our manifests say it."""
    bare, *version = name.split("-", 1)
    return bare, version[0] if version else "present"


def manifest(endpoints: Iterable[Endpoint], names: Mapping[str, str], identity: Path) -> str:
    """Our form: a Cluster document. Contents of files lie in `files/`, as `write_files` names them."""
    spec = {
        "ssh": {"identity": str(identity), "knownHosts": "known_hosts"},
        "packageManager": "dnf",
        "nodes": {e.name: {"address": "127.0.0.1", "ssh": {"port": e.port}} for e in endpoints},
        "hosts": dict(names),
        "packages": {**dict(map(_package, PRESENT)), **dict.fromkeys(ABSENT, "absent")},
        "files": {path: {"source": f"files/{n}", "mode": mode} for n, (path, (_, mode)) in enumerate(FILES.items())},
        "units": {
            unit: {"enabled": "true" if on else "false", "state": "started" if on else "stopped"} for unit, on in UNITS.items()
        },
        "rollout": {"maxUnavailable": "100%"},
    }
    whole = {"apiVersion": "reconcile/v1", "kind": "Cluster", "metadata": {"name": "peers"}, "spec": spec}
    return yaml.safe_dump(whole, sort_keys=False)


def write_files(folder: Path) -> None:
    """The managed files' contents, by their number."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, (content, _) in enumerate(FILES.values()):
        (folder / str(n)).write_text(content)


def playbook(names: Mapping[str, str], files: Path) -> str:
    """Ansible's form, with core's own modules."""
    tasks: list[dict[str, Any]] = [
        {"name": HOSTNAME, "hostname": {"name": "{{ inventory_hostname }}", "use": "systemd"}},
        {
            "name": HOSTS,
            "blockinfile": {
                "path": "/etc/hosts",
                "block": "".join(f"{address} {name}\n" for name, address in names.items()),
                "marker": "# {mark} reconcile",
            },
        },
        {"name": PACKAGES, "dnf": {"name": list(PRESENT), "state": "present"}},
        {"name": REMOVED, "dnf": {"name": list(ABSENT), "state": "absent"}},
        *(
            {"name": path, "copy": {"src": str(files / str(n)), "dest": path, "owner": "root", "group": "root", "mode": mode}}
            for n, (path, (_, mode)) in enumerate(FILES.items())
        ),
        *(
            {"name": unit, "systemd_service": {"name": unit, "enabled": on, "state": "started" if on else "stopped"}}
            for unit, on in UNITS.items()
        ),
    ]
    return yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}], sort_keys=False)


def facts_playbook() -> str:
    """The facts as Ansible gathers and shows them."""
    play = {
        "hosts": "all",
        "gather_facts": True,
        "gather_subset": ["!all", "!min", "platform", "distribution", "hardware", "network"],
        "tasks": [
            {"name": "package facts", "package_facts": {"manager": "rpm"}},
            {"name": "service facts", "service_facts": None},
            {"name": "facts", "debug": {"msg": _ansible_facts()}},
        ],
    }
    return yaml.safe_dump([play], sort_keys=False)


def _ansible_facts() -> dict[str, str]:
    """Where Ansible keeps each of the twenty, in the order of FACTS."""
    first = "ansible_facts.packages.{0}[0]"
    version = f"({first}.version ~ '-' ~ {first}.release) if '{{0}}' in ansible_facts.packages else none"
    running = "ansible_facts.services['{}'].state == 'running'"
    enabled = "ansible_facts.services['{}'].status == 'enabled'"
    packages = [version.format(name) for name in ("glibc", "numactl", "tmux", "htop")]
    units = [form.format(unit) for unit in ("sshd.service", "lab-kmsg.service") for form in (running, enabled)]
    where = [
        *("ansible_facts." + n for n in ("hostname", "distribution | lower", "distribution_version", "kernel", "architecture")),
        *("ansible_facts." + n for n in ("processor_vcpus", "memtotal_mb | int // 1024", "processor[2]")),
        *("ansible_facts." + n for n in ("eth0.macaddress", "eth0.mtu", "lo.mtu")),
        "ansible_facts.packages | length",
        *packages,
        *units,
    ]
    return {name: "{{ " + expression + " }}" for name, expression in zip(FACTS, where, strict=True)}


def for_pyinfra(names: Mapping[str, str], files: Path) -> str:
    """What `pyinfra_plan.py` and `pyinfra_facts.py` read."""
    return json.dumps(
        {
            "hosts": [f"{address} {name}" for name, address in names.items()],
            "marks": MARKS,
            "present": [name.replace("-", "=", 1) for name in PRESENT],
            "absent": list(ABSENT),
            "files": {path: [str(files / str(n)), mode] for n, (path, (_, mode)) in enumerate(FILES.items())},
            "units": UNITS,
            "facts": FACTS,
        },
        indent=1,
    )
