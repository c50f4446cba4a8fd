"""Every format of saved output that can be understood, by name: the one list, by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.facts import (
    driver_version,
    ibstat,
    ibv_devinfo,
    ip_link,
    kernel_log,
    nvcc,
    nvsmi_csv,
    nvsmi_error,
    nvsmi_list,
    nvsmi_nvlink,
    nvsmi_q,
    nvsmi_table,
    nvsmi_xml,
    pci,
    rdma_link,
    topology,
)
from reconciler.model.fact import Absent, Fact, Unknown, Value

Parser = Callable[[str], Fact[Any]]

FORMATS: dict[str, Parser] = {
    "ibstat": ibstat.parse,
    "ibv-devinfo": ibv_devinfo.parse,
    "ip-link": ip_link.parse,
    "kernel-log": kernel_log.parse,
    "lspci": pci.parse,
    "nvcc": nvcc.parse,
    "nvsmi-csv": nvsmi_csv.parse,
    "nvsmi-error": nvsmi_error.parse,
    "nvsmi-L": nvsmi_list.parse,
    "nvsmi-nvlink": nvsmi_nvlink.parse,
    "nvsmi-q": nvsmi_q.parse,
    "nvsmi-table": nvsmi_table.parse,
    "nvsmi-xml": nvsmi_xml.parse,
    "proc-driver-version": driver_version.parse,
    "rdma-link": rdma_link.parse,
    "topo": topology.parse,
}


def plain(value: Any) -> Any:
    """A parsed value as JSON: what is absent or unknown says so by its own key, and is never null or 0."""
    if isinstance(value, Value):
        return plain(value.value)
    if isinstance(value, Absent):
        return {"absent": value.reason}
    if isinstance(value, Unknown):
        return {"unknown": value.why, "detail": value.detail}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
