"""Which packages one version of the GPU driver is: `driver.yaml` of this package."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class DriverPackages:
    """`names`: all packages that have the driver's version, the module's first. `stream`: of dnf's module nvidia-driver."""

    names: tuple[str, ...]
    stream: str | None


@functools.cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    text = (resources.files("reconciler.data") / "driver.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text)["rows"])


def driver_packages(distribution: str, version: str, modules: str, *, nvswitch: bool) -> DriverPackages:
    """Of `version` (`580.95.05`, or `580.*` for any of a branch) on a distribution; `modules` open or proprietary.

    Raises KeyError for a distribution that has no row.
    """
    branch = version.partition(".")[0]
    row = next((r for r in _rows() if distribution in r["distributions"] and int(branch) < r.get("below", 1000)), None)
    if row is None:
        raise KeyError(distribution)
    names = [*row["module"][modules], *row["userspace"], *(row["nvswitch"] if nvswitch else ())]
    stream = row["stream"][modules].format(branch=branch) if "stream" in row else None
    return DriverPackages(tuple(name.format(branch=branch) for name in names), stream)
