"""Versions: the stack, what has to fit together on a node."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, WithJsonSchema

from reconciler.model.base import Model, about
from reconciler.model.desired import PackageManager
from reconciler.model.types import (
    DriverVersion,
    Name,
    PackageName,
    PackageState,
    PythonPackage,
    PythonPin,
    PythonSeries,
    RepositoryPath,
    refuse,
)
from reconciler.model.words import nearest

# Distribution -> its package manager, and the folder of NVIDIA's repository for it
# (https://developer.download.nvidia.com/compute/cuda/repos/: the four of EL 9 share rhel9).
DISTRIBUTIONS: dict[str, tuple[PackageManager, str]] = {
    "centos-stream-9": ("dnf", "rhel9"),
    "rhel-9": ("dnf", "rhel9"),
    "rocky-9": ("dnf", "rhel9"),
    "almalinux-9": ("dnf", "rhel9"),
    "ubuntu-22.04": ("apt", "ubuntu2204"),
    "ubuntu-24.04": ("apt", "ubuntu2404"),
    "debian-12": ("apt", "debian12"),
    "debian-13": ("apt", "debian13"),
}
MANAGERS: tuple[PackageManager, ...] = get_args(PackageManager)


def _known(name: str) -> str:
    if name not in DISTRIBUTIONS:
        raise refuse("distribution", allowed=tuple(DISTRIBUTIONS), near=nearest(name, DISTRIBUTIONS))
    return name


Distribution = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(DISTRIBUTIONS)})]


class OsPins(Model):
    """What the stack wants of one distribution."""

    later: ClassVar[frozenset[str]] = frozenset({"kernel"})
    packages: dict[PackageName, PackageState | None] | None = about(None, "of the stack: a version, present or absent")


class Environment(Model):
    """A Python environment of the stack. Here `null` removes what `extends` brings."""

    later: ClassVar[frozenset[str]] = frozenset({"cuda"})
    python: PythonSeries | None = about(None, "MAJOR.MINOR; default: the stack's")
    packages: dict[PythonPackage, PythonPin | None] | None = about(None, "what people choose; `reconcile pin` locks the rest")
    lock: RepositoryPath | None = about(None, "default locks/STACK/ENVIRONMENT.txt, written by `reconcile pin`")


class VersionsSpec(Model):
    """The stack. Here `null` removes what `extends` brings."""

    later: ClassVar[frozenset[str]] = frozenset({"cuda", "cudnn", "nccl", "dcgm"})
    extends: Name | None = about(None, "another Versions; what is said here wins, maps merge, null removes")
    driver: DriverVersion | None = about(
        None, "of NVIDIA's GPU driver: exact, or 580.* for any of a branch; all its packages follow"
    )
    driver_modules: Literal["open", "proprietary"] | None = about(None, "default open; proprietary only for Volta and older")
    os: dict[Distribution, OsPins | None] | None = about(None, "distributions that this stack is for; left out: any")
    python: PythonSeries | None = about(None, "MAJOR.MINOR of the environments")
    environments: dict[Name, Environment | None] | None = about(None, "Python environments, by purpose")
