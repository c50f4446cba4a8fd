"""Every fact that a running node is asked for, by name: the one list, by hand."""

from __future__ import annotations

from reconciler.facts import boot, driver, gpu_links, gpu_users, gpus, kernel_events, pci_gpus
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
)

BY_NAME = {fact.name: fact for fact in LIVE}
