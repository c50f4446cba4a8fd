"""Where one lab lives: its name, subnet and directories, and every name derived from them."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lab.errors import UsageError

HTTP_PORT = 8000
_NAME_MOST = 8  # 8 + '-' + 'gpu01' stays below the 15 characters of an interface name
_NAME = re.compile(rf"[a-z][a-z0-9]{{0,{_NAME_MOST - 1}}}")
_SUBNET = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}")


@dataclass(frozen=True)
class LabConfig:
    """One lab. Two labs with different name and subnet share nothing but the image cache."""

    name: str = "lab"
    subnet: str = "10.88.0"  # the first three octets of a /24
    cache: Path = Path("/var/cache/reconcile-lab")
    run: Path = Path("/run")

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"lab name {self.name!r}: 1 to 8 of a-z and 0-9, starting with a letter")
        if not _SUBNET.fullmatch(self.subnet):
            raise UsageError(f"lab subnet {self.subnet!r}: three octets, such as 10.88.0")
        try:
            ipaddress.IPv4Network(self.network)
        except ValueError as error:
            raise UsageError(f"lab subnet {self.subnet!r}: {error}") from error

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "LabConfig":
        """Read RECONCILE_LAB_NAME, RECONCILE_LAB_SUBNET and RECONCILE_LAB_CACHE over the defaults."""
        return cls(
            name=environ.get("RECONCILE_LAB_NAME") or cls.name,
            subnet=environ.get("RECONCILE_LAB_SUBNET") or cls.subnet,
            cache=Path(environ.get("RECONCILE_LAB_CACHE") or cls.cache),
        )

    def beside(self, number: int) -> "LabConfig":
        """The lab to run beside this one, counted from 1: its name with a number, the subnet that far on, the same cache."""
        suffix = str(number + 1)
        first, second, third = map(int, self.subnet.split("."))
        name = f"{self.name[: _NAME_MOST - len(suffix)]}{suffix}"
        return replace(self, name=name, subnet=f"{first}.{second}.{(third + number) % 256}")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that `from_environment` reads this lab from."""
        return {"RECONCILE_LAB_NAME": self.name, "RECONCILE_LAB_SUBNET": self.subnet, "RECONCILE_LAB_CACHE": str(self.cache)}

    @property
    def network(self) -> str:
        return f"{self.subnet}.0/24"

    @property
    def gateway(self) -> str:
        return f"{self.subnet}.1"

    @property
    def url(self) -> str:
        """The base URL of the lab's package repositories."""
        return f"http://{self.gateway}:{HTTP_PORT}"

    @property
    def state(self) -> Path:
        return self.run / f"reconcile-{self.name}"

    @property
    def lock(self) -> Path:
        return self.run / "lock" / f"reconcile-{self.name}.lock"

    @property
    def identity(self) -> Path:
        return self.state / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    @property
    def bridge(self) -> str:
        return f"{self.name}-br"

    @property
    def nft_table(self) -> str:
        return f"reconcile_{self.name}"

    @property
    def cgroup(self) -> str:
        """The lab's group below each mounted hierarchy."""
        return f"reconcile-{self.name}"

    def link(self, node: str) -> str:
        """The host's end of a node's network cable; also the name of its network namespace."""
        return f"{self.name}-{node}"
