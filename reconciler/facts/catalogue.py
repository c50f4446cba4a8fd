"""Every fact that a running node is asked for, by name: the one list, by hand."""

from __future__ import annotations

from reconciler.facts import (
    boot,
    config_files,
    cuda,
    cuda_libraries,
    dcgm,
    holds,
    packages_deb,
    packages_rpm,
    python_environments,
    repositories,
    torch_build,
)
from reconciler.facts.live import LiveFact

LIVE: tuple[LiveFact, ...] = (
    boot.FACT,
    packages_rpm.FACT,
    packages_deb.FACT,
    repositories.FACT,
    holds.FACT,
    python_environments.FACT,
    cuda.FACT,
    cuda_libraries.FACT,
    torch_build.FACT,
    dcgm.FACT,
    config_files.FACT,
)

BY_NAME = {fact.name: fact for fact in LIVE}
