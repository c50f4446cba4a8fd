"""Settings of the kernel that matter to a node which trains: values below /proc/sys."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.facts import answers, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Fact, Raw, Read, Value

# By hand. Network buffers and backlogs: Documentation/admin-guide/sysctl/net.rst, networking/ip-sysctl.rst, and what adapter
# vendors ask for in their tuning guides (rmem_max, wmem_max, tcp_rmem, tcp_wmem, netdev_max_backlog). arp_* and rp_filter: several
# ports in one network answer for each other without them (ip-sysctl.rst), which breaks RoCE with a rail for each GPU. Memory:
# sysctl/vm.rst; max_map_count and overcommit_memory limit processes that map much; numa_balancing moves pages under a running job
# (sysctl/kernel.rst). Processes and files: what thousands of data loader workers run out of (sysctl/kernel.rst, sysctl/fs.rst).
# yama: whether py-spy and cuda-gdb may look into a job that hangs (LSM/Yama.rst). panic*: whether a node that is lost comes back.
KEYS = (
    "fs.aio-max-nr",
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.nr_open",
    "kernel.core_pattern",
    "kernel.hung_task_timeout_secs",
    "kernel.numa_balancing",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.threads-max",
    "kernel.yama.ptrace_scope",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.all.arp_announce",
    "net.ipv4.conf.all.arp_filter",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.disable_ipv6",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)


@dataclass(frozen=True, slots=True)
class Sysctl:
    """`values` by key, blanks in them as one space; Absent(NoSuchSetting) where this kernel has no such key."""

    values: dict[str, Fact[str]]


def _value(found: Fact[str]) -> Fact[str]:
    if isinstance(found, Absent):
        return Absent("NoSuchSetting")
    if not isinstance(found, Value):
        return found
    said = answers.text(found.value)
    return Value(" ".join(said.value.split())) if isinstance(said, Value) else said


def parse(raws: tuple[Raw, ...]) -> Fact[Sysctl]:
    return Value(Sysctl({key: _value(raw.file_text(said)) for key, said in zip(KEYS, raws, strict=True)}))


# no key here has a dot in one of its parts, as the name of an interface may have
FACT = LiveFact("sysctl", lambda about: tuple(Read("/proc/sys/" + key.replace(".", "/"), 4096) for key in KEYS), parse)
