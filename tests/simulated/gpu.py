"""A node's GPUs and their driver: the module that a boot would load, the loaded one, who uses them, what our restarts came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.plan import drivers

PACKAGES = ("kmod-nvidia-open-dkms", "nvidia-driver-cuda")  # the first has the module's source
STREAM_FILE = "/etc/dnf/modules.d/nvidia-driver.module"
GPUS = 1
DAEMON = "811 nvidia-persiste nvidia-persistenced.service 0"  # of the driver itself: it holds nothing up
PERSON = "4711 python - 0"
BOOT = {"/boot/grub2/grub.cfg": drivers.GRUB, "/boot/grub2/grubenv": drivers.environment(drivers.KERNEL)}


def stream_of(version: str) -> str:
    return f"{version.partition('.')[0]}-open"


def enabled(version: str) -> str:
    """What says that the stream of this version is enabled."""
    return f"[nvidia-driver]\nname=nvidia-driver\nstream={stream_of(version)}\nprofiles=\nstate=enabled\n\n"


@dataclass
class Gpu:
    """`module`: on disk, for the kernel that boots next. `failed`: what the last restart of ours was for, until it was
    seen to be there. `asked`: what a restart was asked for last; `wanted`: the same once a unit is there for it."""

    module: str | None = None
    loaded: str | None = None
    user: bool = False
    asked: str | None = None
    wanted: str | None = None
    failed: str | None = None

    def boots(self, *, refused: bool) -> None:
        """The driver is loaded where there is one that lets itself be loaded; nobody uses it yet."""
        self.loaded, self.user = None if refused else self.module, False
        if self.wanted is not None:
            self.failed, self.wanted = self.wanted, None

    def looked_at(self) -> None:
        """At the end of steps: what a restart was for is there."""
        if self.failed == self.loaded:
            self.failed = None

    def take(self, *, taken: bool) -> None:
        """A process takes a GPU, which needs a loaded driver, or leaves it."""
        self.user = taken and self.loaded is not None

    def answer(self, fragment: str) -> Any:
        """What a fragment of the node program would find."""
        about = self._about()
        answers = {"driver": drivers.layers, "gpu_users": drivers.users, "kernels": drivers.kernels}
        return drivers.bus(GPUS) if fragment == "pci" else answers[fragment](about)

    def _about(self) -> dict[str, Any]:
        about: dict[str, Any] = {"modules": {drivers.KERNEL: self.module} if self.module else {}}
        if self.loaded:
            about |= {"loaded": self.loaded, "users": [DAEMON, *([PERSON] if self.user else [])]}
        return about
