"""What dcgm-exporter says about a node's GPUs: its Prometheus text."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.facts import raw, text
from reconciler.facts.prometheus_text import Sample, same, samples, without
from reconciler.model.fact import Absent, Fact, Unknown, Value

_PREFIX = "DCGM_FI_"
_XID = "DCGM_FI_DEV_XID_ERRORS"


@dataclass(frozen=True, slots=True)
class Instance:
    """One MIG instance and its values; `gpu_instance` is nvidia-smi's GPU instance id."""

    gpu_instance: str
    profile: Fact[str]
    values: dict[str, Fact[float]]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One physical GPU, however many series it has. `values` in DCGM's units, by metric; with MIG they stand in `instances`.

    `last_xid`: Absent(NoXid) where DCGM says 0, Unknown(NotExported) where it says nothing.
    """

    uuid: str
    index: Fact[str]
    model: Fact[str]
    pci_bus_id: Fact[str]
    driver: Fact[str]
    hostname: Fact[str]
    last_xid: Fact[int]
    values: dict[str, Fact[float]]
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class DcgmMetrics:
    """`metrics`: names in the text's order. `driver`, `model`: what all GPUs have, Unknown(Several) where they differ.

    `unread`: DCGM's lines that are no samples, or have no GPU's UUID.
    """

    gpus: tuple[Gpu, ...]
    gpu_count: int
    mig_instances: int
    driver: Fact[str]
    model: Fact[str]
    metrics: tuple[str, ...]
    unread: tuple[Unknown, ...]


@dataclass(slots=True)
class _Series:
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, Fact[float]] = field(default_factory=dict)
    instances: dict[str, dict[str, Fact[float]]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)


def _take(series: _Series, sample: Sample) -> None:
    """A sample to its GPU, or to the GPU's instance that its labels name."""
    for key, value in sample.labels.items():
        series.labels.setdefault(key, value)
    instance = sample.labels.get("GPU_I_ID", "")
    values = series.instances.setdefault(instance, {}) if instance else series.values
    if instance:
        series.profiles.setdefault(instance, sample.labels.get("GPU_I_PROFILE", ""))
    values[sample.name] = same(values.get(sample.name), sample.value)


def _said(labels: dict[str, str], key: str) -> Fact[str]:
    return Value(labels[key]) if labels.get(key) else Unknown("NotExported", key)


def _xid(series: _Series) -> Fact[int]:
    """The GPU's own, or of its instances the one that is not 0: DCGM repeats the GPU's in each."""
    found = [values[_XID] for values in (series.values, *series.instances.values()) if _XID in values]
    xids = {int(value.value) for value in found if isinstance(value, Value)}
    xids.discard(0)
    if len(xids) > 1:
        return Unknown("Several", ", ".join(str(xid) for xid in sorted(xids)[:8]))
    if xids:
        return Value(xids.pop())
    unread = next((value for value in found if not isinstance(value, Value)), None)
    if unread:
        return unread
    return Absent("NoXid") if found else Unknown("NotExported", _XID)


def _gpu(uuid: str, series: _Series) -> Gpu:
    instances = (
        Instance(name, Value(series.profiles[name]) if series.profiles[name] else Unknown("Missing"), values)
        for name, values in series.instances.items()
    )
    return Gpu(
        uuid=uuid,
        index=_said(series.labels, "gpu"),
        model=_said(series.labels, "modelName"),
        pci_bus_id=_said(series.labels, "pci_bus_id"),
        driver=_said(series.labels, "DCGM_FI_DRIVER_VERSION"),
        hostname=_said(series.labels, "Hostname"),
        last_xid=_xid(series),
        values=series.values,
        instances=tuple(instances),
    )


def _common(found: list[Fact[str]]) -> Fact[str]:
    known = {value.value for value in found if isinstance(value, Value)}
    if len(known) > 1:
        return Unknown("Several", raw.clean(", ".join(sorted(known)[:8])))
    return Value(known.pop()) if known else Unknown("NotExported")


def parse(said: str) -> Fact[DcgmMetrics]:
    """/metrics of dcgm-exporter; Absent(NoDcgmMetrics) where another program answers, Unknown where no line can be read."""
    found: dict[str, _Series] = {}
    metrics: dict[str, None] = {}
    unread: list[Unknown] = []
    clean = text.clean(said)
    for sample in samples(clean, _PREFIX):
        if isinstance(sample, Unknown):
            unread.append(sample)
        elif uuid := sample.labels.get("UUID") or sample.labels.get("uuid"):
            metrics[sample.name] = None
            _take(found.setdefault(uuid, _Series()), sample)
        else:
            unread.append(Unknown("NoUuid", sample.name[:120]))
    if not found:
        return unread[0] if unread else without(clean, "NoDcgmMetrics")
    gpus = tuple(_gpu(uuid, series) for uuid, series in found.items())
    return Value(
        DcgmMetrics(
            gpus=gpus,
            gpu_count=len(gpus),
            mig_instances=sum(len(gpu.instances) for gpu in gpus),
            driver=_common([gpu.driver for gpu in gpus]),
            model=_common([gpu.model for gpu in gpus]),
            metrics=tuple(metrics),
            unread=tuple(unread),
        )
    )
