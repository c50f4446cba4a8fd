"""Every fact that a running node is asked for, by name: the one list, by hand."""

from __future__ import annotations

from reconciler.facts import (
    boot,
    config_files,
    cuda,
    cuda_libraries,
    dcgm,
    driver,
    gpu_links,
    gpu_users,
    gpus,
    holds,
    kernel_events,
    packages_deb,
    packages_rpm,
    pci_gpus,
    python_environments,
    repositories,
    torch_build,
)
from reconciler.facts.live import LiveFact

LIVE: tuple[LiveFact, ...] = (
    boot.FACT,
    pci_gpus.FACT,
    driver.FACT,
    driver.MODULES,
    gpus.FACT,
    gpu_users.FACT,
    gpu_links.TOPOLOGY,
    gpu_links.NVLINK,
    gpu_links.P2P,
    kernel_events.FACT,
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
