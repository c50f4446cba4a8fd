"""A node's GPU driver as a case describes it, in the forms that the node's fragments answer with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from reconciler.model.desired import GpuDriverSpec, PackageSpec
from reconciler.model.fact import Raw
from reconciler.model.version import is_prefix
from tests.cases import raw

Case = Mapping[str, Any]
KERNEL = "5.14.0-611.el9.x86_64"
PACKAGES = ("kmod-nvidia-open-dkms", "nvidia-driver-cuda", "libnvidia-ml")
_NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@lab)  \nGCC version:  gcc 11\n"
GRUB = 'set default="${saved_entry}"\nblscfg\n'


def spec(said: Case) -> GpuDriverSpec:
    pin = said["driver"]
    kind: Literal["exact", "prefix"] = "prefix" if is_prefix(pin) else "exact"
    packages = tuple(PackageSpec(name, kind, pin, said.get("locked")) for name in said.get("packages", PACKAGES))
    return GpuDriverSpec(said["driver"], packages, said.get("stream"), said.get("gpus", 8))


def installed(version: str, packages: tuple[str, ...] = PACKAGES) -> list[str]:
    """Lines of rpm for all packages of a version."""
    return [f"{name} 3 {version} 1.el9 x86_64" for name in packages]


def answer(key: str, found: Case) -> tuple[Raw, ...]:
    """`found.driver`: `modules` kernel -> version on disk, `loaded`, `next` kernel, `headers`, `gpus`, `users`, `rebooted`; what is
    left out is a node of eight GPUs that never had a driver."""
    about = found.get("driver", {})
    if key in about.get("unread", {}):
        return tuple(raw(about["unread"][key]) for _ in range(12))
    if key == "driver-modules":
        return (_said(layers(about)), _said(bus(about.get("gpus", 8))))
    if key == "kernel":
        return _kernel(about)
    if key == "gpu-users":
        return (_said(users(about)),)
    if key == "driver-stream":
        text = f"[nvidia-driver]\nname=nvidia-driver\nstream={found.get('stream')}\nprofiles=\nstate=enabled\n"
        return (Raw(text.encode()) if "stream" in found else raw({"error": "missing"}),)
    notes = {"GpuDriver/nvidia": about["rebooted"]} if "rebooted" in about else {}
    return (Raw(json.dumps({"version": 1, "reboots": notes}).encode()) if notes else raw({"error": "missing"}),)


def _said(value: Any) -> Raw:
    return Raw(json.dumps(value).encode(), status=0)


def layers(about: Case) -> dict[str, Any]:
    def module(version: str) -> dict[str, Any]:
        unlisted = version.endswith(" unlisted")
        text = f"version: {version.split(maxsplit=1)[0]}\nlicense: Dual MIT/GPL"
        return {"path": "/lib/modules/x/extra/nvidia.ko", "listed": not unlisted, "info": text}

    modules = about.get("modules", {})
    found = {name: module(modules[name]) if name in modules else {"error": "missing"} for name in {KERNEL, *modules}}
    loaded = about.get("loaded")
    return {
        "running": KERNEL,
        "kernels": found,
        "loaded": _NVRM.format(loaded) if loaded else {"error": "missing"},
        "module": {"error": "missing"},
        "libraries": [],
        "units": {},
    }


def bus(number: int) -> dict[str, Any]:
    device = {"class": "0x030200", "vendor": "0x10de", "device": "0x20b5"}
    return {"devices": {f"0000:{17 + n}:00.0": device for n in range(number)}, "proc": []}


def _kernel(about: Case) -> tuple[Raw, ...]:
    missing = raw({"error": "missing"})
    block = environment(about.get("next", KERNEL))
    grub = (missing, missing) if about.get("no_boot_loader") else (Raw(GRUB.encode()), Raw(block.encode()))
    return (_said(kernels(about)), Raw(b"ro"), missing, *grub, *(missing for _ in range(5)))


def environment(boots: str) -> str:
    """GRUB's block of variables on a node that starts this kernel next."""
    return f"# GRUB Environment Block\nsaved_entry=m-{boots}\n".ljust(1024, "#")


def kernels(about: Case) -> dict[str, Any]:
    boots, headers = about.get("next", KERNEL), about.get("headers", True)
    entry = f"title CentOS\nversion {boots}\nlinux /boot/vmlinuz-{boots}\noptions ro\n"
    found = {name: {"image": True, "headers": headers, "listed": False, "modules": {}} for name in {KERNEL, boots}}
    entries = {f"/boot/loader/entries/m-{boots}.conf": entry}
    return {"running": KERNEL, "machine": "x86_64", "kernels": found, "entries": entries}


def users(about: Case) -> dict[str, Any]:
    """`pid command unit minor`, the unit `-` for none."""
    found = [_user(*line.split()) for line in about.get("users", ())]
    hidden = about.get("hidden", 0)
    return {"loaded": "loaded" in about, "users": found, "seen": 9, "denied": hidden, "hertz": 100, "passwd": {"1000": "ml"}}


def _user(pid: str, command: str, unit: str, minor: str) -> dict[str, Any]:
    stat = f"{pid} ({command}) S " + " ".join("0" for _ in range(18)) + " 5000 0\n"
    group = "0::/user.slice" if unit == "-" else f"0::/system.slice/{unit}"
    devices = [f"/dev/nvidia{minor}", "/dev/nvidiactl"]
    return {"pid": int(pid), "stat": stat, "argv0": command, "uid": 1000, "cgroup": group, "devices": devices}
