"""Why a GPU driver that differs is left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.kinds.driver_layers import Layers, told
from reconciler.model.desired import GpuDriverSpec
from reconciler.model.fact import Absent, Unknown, Value
from reconciler.model.plan import HoldReason


def hold(spec: GpuDriverSpec, seen: Layers, paths: Iterable[str], target: str, *, spare: bool) -> HoldReason | None:
    """The first reason not to change the fields `paths` towards `target`; None: it may be done.

    `spare`: another node may go down now.
    """
    changed = set(paths)
    checks: tuple[Callable[[], HoldReason | None], ...] = (
        lambda: _gpus(spec, seen),
        lambda: _module(seen, changed, target),
        lambda: _loading(seen, target) if "loaded" in changed else None,
        lambda: _users(seen),
        lambda: HoldReason("TooManyDown") if "loaded" in changed and not spare else None,
    )
    return next((reason for check in checks if (reason := check())), None)


def _gpus(spec: GpuDriverSpec, seen: Layers) -> HoldReason | None:
    """A driver is changed on a node that has the GPUs which Git says; on another one somebody has to look first."""
    if not isinstance(seen.gpus, Value):
        why, detail = (seen.gpus.why, seen.gpus.detail) if isinstance(seen.gpus, Unknown) else (seen.gpus.reason, "")
        return HoldReason("GpusUnknown", {"inner": why, "detail": detail})
    if seen.gpus.value == 0 or (spec.gpus is not None and seen.gpus.value != spec.gpus):
        return HoldReason("GpuCountDiffers", {"found": seen.gpus.value, "declared": spec.gpus})
    return None


def _module(seen: Layers, changed: set[str], target: str) -> HoldReason | None:
    """Whether the kernel that boots next has the module, or will get it with the packages."""
    if not changed & {"onDisk", "loaded"}:
        return None
    if not isinstance(seen.next_kernel, Value):
        inner = seen.next_kernel.why if isinstance(seen.next_kernel, Unknown) else seen.next_kernel.reason
        return HoldReason("NextKernelUnknown", {"inner": inner})
    if "onDisk" not in changed:
        return None
    kernel = seen.next_kernel.value
    if "packages" not in changed:  # they are there, and were not built into a module for this kernel
        return HoldReason("NoModuleForNextKernel", {"kernel": kernel, "version": target, "found": _found(seen)})
    if isinstance(seen.headers, Unknown):
        return HoldReason("NextKernelUnknown", {"inner": seen.headers.why})
    return HoldReason("NoKernelHeaders", {"kernel": kernel}) if seen.headers != Value(True) else None


def _found(seen: Layers) -> str | None:
    return seen.on_disk.value if isinstance(seen.on_disk, Value) else None


def _loading(seen: Layers, target: str) -> HoldReason | None:
    """A reboot that did not bring it once would not bring it again: nobody is helped by a node that restarts for ever."""
    if isinstance(seen.rebooted, Unknown):
        return HoldReason(seen.rebooted.why, {"detail": seen.rebooted.detail})
    if seen.rebooted == Value(target):
        loaded = seen.loaded.value if isinstance(seen.loaded, Value) else None
        return HoldReason("DriverDidNotLoad", {"version": target, "loaded": loaded, "on_disk": _found(seen)})
    return None


def _users(seen: Layers) -> HoldReason | None:
    if isinstance(seen.users, Value):
        return HoldReason("GpuInUse", {"users": told(seen.users.value)}) if seen.users.value else None
    if isinstance(seen.users, Absent):
        return None
    return HoldReason("GpuUsersUnknown", {"inner": seen.users.why, "detail": seen.users.detail})
