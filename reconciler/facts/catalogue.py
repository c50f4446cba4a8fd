"""Every fact that a running node is asked for, by name: the one list, by hand."""

from __future__ import annotations

from reconciler.facts import (
    boot,
    clock,
    config_files,
    cuda,
    cuda_libraries,
    dcgm,
    disks,
    hardware,
    holds,
    hostname,
    kernel,
    limits,
    links,
    mounts,
    names,
    os_release,
    packages_deb,
    packages_rpm,
    python_environments,
    rdma,
    repositories,
    slurm_state,
    sysctl,
    torch_build,
    units,
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
    os_release.FACT,
    hostname.FACT,
    names.FACT,
    kernel.FACT,
    clock.FACT,
    sysctl.FACT,
    mounts.FACT,
    limits.FACT,
    units.FACT,
    links.FACT,
    rdma.FACT,
    hardware.FACT,
    disks.FACT,
    slurm_state.FACT,
)

BY_NAME = {fact.name: fact for fact in LIVE}
