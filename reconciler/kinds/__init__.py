"""One file a resource kind, and the one list of them, by hand."""

from __future__ import annotations

from reconciler.kinds.base import Kind
from reconciler.kinds.file import File
from reconciler.kinds.gpu_driver import GpuDriver
from reconciler.kinds.hostname import Hostname
from reconciler.kinds.hosts_entries import HostsEntries
from reconciler.kinds.package import Package
from reconciler.kinds.python_environment import PythonEnvironment
from reconciler.kinds.systemd_unit import SystemdUnit

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (Hostname(), HostsEntries(), Package(), GpuDriver(), File(), PythonEnvironment(), SystemdUnit())
}
