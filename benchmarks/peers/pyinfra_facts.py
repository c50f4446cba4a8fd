"""pyinfra's form of the facts, for its own interpreter: named and ordered as in `work.FACTS`."""

import json
import os
from pathlib import Path

from pyinfra import host
from pyinfra.facts.hardware import CpuInfo, Cpus, Memory, NetworkDevices
from pyinfra.facts.rpm import RpmPackages
from pyinfra.facts.server import Arch, Hostname, KernelVersion, LinuxDistribution
from pyinfra.facts.systemd import SystemdEnabled, SystemdStatus

WORK = json.loads(Path(os.environ["PEERS_WORK"]).read_text())
WATCHED = ("sshd.service", "lab-kmsg.service")

meta = host.get_fact(LinuxDistribution)["release_meta"]
links = host.get_fact(NetworkDevices)
packages = host.get_fact(RpmPackages)
running = host.get_fact(SystemdStatus)
enabled = host.get_fact(SystemdEnabled)
found = (
    host.get_fact(Hostname),
    meta["ID"],
    meta["VERSION_ID"],
    host.get_fact(KernelVersion),
    host.get_fact(Arch),
    host.get_fact(Cpus),
    host.get_fact(Memory) // 1024,
    host.get_fact(CpuInfo)["Model name"],
    links["eth0"]["ether"],
    links["eth0"]["mtu"],
    links["lo"]["mtu"],
    len(packages),
    *(next(iter(packages.get(name, [None]))) for name in ("glibc", "numactl", "tmux", "htop")),
    *(state[unit] for unit in WATCHED for state in (running, enabled)),
)
print("FACTS", host.name, json.dumps(dict(zip(WORK["facts"], found, strict=True))))
