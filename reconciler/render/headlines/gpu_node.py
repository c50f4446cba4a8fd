"""What a node has of NVIDIA below nvidia-smi, each in one line: PCI devices, the driver's layers, who uses the GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.data import pci
from reconciler.model.seen import is_absent
from reconciler.render.headlines.words import counted, some, there, word
from reconciler.render.text import count, safe

_SHOWN = 4  # processes that are named in one line
_STATES = {
    "no-hardware": "no GPU",
    "not-on-disk": "no module on the disk for this kernel",
    "not-loaded": "on the disk, not loaded",
    "loaded": "loaded",
    "reboot-pending": "another version on the disk: changes at the next boot",
    "version-mismatch": "libraries of another version than the loaded module",
}


def _pci(value: Any) -> str:
    parts = [_names(value["gpus"])] if value["gpus"] else ["no GPU"]
    parts += [f"{_names(value['switches'])} (switches)"] if value["switches"] else []
    devices = [*value["gpus"], *value["switches"]]
    for what, holds in _DEVIATIONS:
        those = [device["address"] for device in devices if holds(device)]
        parts += [f"{what}: {some(those, _SHOWN)}"] if those else []
    return "; ".join([*parts, *([f"{count(len(value['unread']), 'device')} not readable"] if value["unread"] else [])])


def _names(devices: Any) -> str:
    return counted(pci.names().get(str(device["device"]), word(device["device"])) for device in devices)


def _narrow(device: Any) -> bool:
    now, most = device["width"], device["width_max"]
    return isinstance(now, int) and isinstance(most, int) and now < most


_DEVIATIONS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("does not answer", lambda device: device["answers"] is False),
    ("narrower than it could be", _narrow),
    ("without a driver", lambda device: is_absent(device["driver"])),
    (
        "fatal PCIe errors",
        lambda device: any(isinstance(n, int) and n for n in (device["aer"]["fatal"], device["aer"]["nonfatal"])),
    ),
)


def _driver(value: Any) -> str:
    state = value["state"]
    said = _STATES.get(state, safe(state)) if isinstance(state, str) else f"state {word(state)}"
    versions = [
        f"{name} {word(value[key])}"
        for name, key in (("module", "loaded_version"), ("disk", "on_disk"), ("libraries", "userspace"))
        if state != "no-hardware" and not is_absent(value[key])
    ]
    bare = [kernel for kernel, module in value["kernels"].items() if is_absent(module)] if there(value["kernels"]) else []
    kernels = [f"no module for kernel {some(bare, _SHOWN)}"] if bare and state not in ("no-hardware", "not-on-disk") else []
    return "; ".join([" ".join([said, *([f"({', '.join(versions)})"] if versions else [])]), *kernels, *_daemons(value)])


def _daemons(value: Any) -> list[str]:
    """What runs; a fabric manager that does not where there are switches."""
    manager, persistence = value["fabric_manager"]["pids"], value["persistence_daemon"]["pids"]
    parts = []
    if isinstance(manager, list) and manager:
        parts.append(f"fabric manager {word(value['fabric_manager_version'])}")
    elif isinstance(value["switches"], int) and value["switches"]:
        parts.append("fabric manager does not run" if isinstance(manager, list) else "fabric manager ?")
    return [*parts, *(["persistence daemon runs"] if isinstance(persistence, list) and persistence else [])]


def _users(value: Any) -> str:
    users = [f"{word(user['command'])} ({_of(user)})" for user in value["users"][:_SHOWN]]
    more = [f"{len(value['users']) - _SHOWN} more"] if len(value["users"]) > _SHOWN else []
    said = ", ".join([*users, *more]) or "nobody"
    return said if value["complete"] is True else f"{said}; there may be others ({word(value['complete'].get('detail') or '?')})"


def _of(user: Any) -> str:
    gpus = f", GPU {','.join(map(str, user['minors']))}" if user["minors"] else ""
    job = f", job {user['slurm_job']}" if isinstance(user["slurm_job"], int) else ""
    return f"pid {word(user['pid'])}, {word(user['unit'])}{job}{gpus}"


HEADLINES: Mapping[str, Callable[[Any], str]] = {
    "pci-gpus": _pci,
    "driver": _driver,
    "driver-modules": _driver,
    "gpu-users": _users,
}
