"""What dnf and rpm say on a simulated node, and what a call of dnf asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.simulated import gpu
from tests.simulated.acts import DRIVERS, PACKAGES, VERSIONS


def row(name: str, version: str) -> str:
    number, release = version.split("-")
    return f"{name}\t0\t{number}\t{release}\tx86_64\n"


def installed(packages: Mapping[str, str]) -> str:
    return "".join(row(name, version) for name, version in packages.items())


def offered(argv: list[str], enabled: Callable[[str], bool]) -> str:
    """Every version of what is asked for; of the driver those whose module stream is `enabled`, or all where that is asked for."""
    asked = argv[argv.index("--") + 1 :]
    shown = [version for version in DRIVERS if enabled(version) or "--disable-modular-filtering" in argv]
    plain = "".join(row(name, version) for name in asked if name in PACKAGES for version in VERSIONS)
    return plain + "".join(row(name, f"{version}-1") for name in asked if name in gpu.PACKAGES for version in shown)


def lines(argv: list[str], given: bytes) -> list[list[str]]:
    """What is to be done, each a verb with its names."""
    if argv[-1] == "shell":
        return [line.split() for line in given.decode().splitlines()]
    at = next(i for i, word in enumerate(argv) if word in ("install", "remove"))
    return [argv[at:]]


def refusal(asked: list[list[str]], enabled: Callable[[str], bool]) -> str:
    """dnf knows no driver of a stream that is not enabled."""
    names = [name for verb, *names in asked if verb == "install" for name in names if name.startswith(gpu.PACKAGES)]
    missing = [name for name in names if not enabled(name.split("-")[-2])]
    return f"No match for argument: {missing}" if missing else ""
