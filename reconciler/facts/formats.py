"""Every format of saved output that can be understood, by name: the one list, by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.facts import (
    collect_env,
    dcgm_metrics,
    disk_space,
    driver_version,
    ds_report,
    ibstat,
    ibv_devinfo,
    ip_link,
    kernel_log,
    nccl_log,
    nccl_tests,
    nvcc,
    nvsmi_csv,
    nvsmi_error,
    nvsmi_list,
    nvsmi_nvlink,
    nvsmi_q,
    nvsmi_table,
    nvsmi_xml,
    pci,
    pip_list,
    rdma_link,
    rpm_list,
    slurm,
    time_sync,
    topology,
    torchrun,
    vllm_metrics,
)
from reconciler.model.fact import Absent, Fact, Unknown, Value

Parser = Callable[[str], Fact[Any]]

FORMATS: dict[str, Parser] = {
    "chronyc": time_sync.parse,
    "collect-env": collect_env.parse,
    "dcgm-metrics": dcgm_metrics.parse,
    "df": disk_space.parse,
    "ds-report": ds_report.parse,
    "ibstat": ibstat.parse,
    "ibv-devinfo": ibv_devinfo.parse,
    "ip-link": ip_link.parse,
    "kernel-log": kernel_log.parse,
    "lspci": pci.parse,
    "nccl-log": nccl_log.parse,
    "nccl-tests": nccl_tests.parse,
    "nvcc": nvcc.parse,
    "nvsmi-csv": nvsmi_csv.parse,
    "nvsmi-error": nvsmi_error.parse,
    "nvsmi-L": nvsmi_list.parse,
    "nvsmi-nvlink": nvsmi_nvlink.parse,
    "nvsmi-q": nvsmi_q.parse,
    "nvsmi-table": nvsmi_table.parse,
    "nvsmi-xml": nvsmi_xml.parse,
    "pip": pip_list.parse,
    "proc-driver-version": driver_version.parse,
    "rdma-link": rdma_link.parse,
    "rpm-qa": rpm_list.parse,
    "slurm": slurm.parse,
    "topo": topology.parse,
    "torchrun": torchrun.parse,
    "vllm-metrics": vllm_metrics.parse,
}


def plain(value: Any) -> Any:
    """A parsed value as JSON: what is absent or unknown says so by its own key, and is never null or 0."""
    if isinstance(value, Value):
        return plain(value.value)
    if isinstance(value, Absent):
        return {"absent": value.reason}
    if isinstance(value, Unknown):
        return {"unknown": value.why, "detail": value.detail}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
