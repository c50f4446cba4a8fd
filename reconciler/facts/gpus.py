"""The GPUs of a running node by nvidia-smi, counted against the PCI bus and against the driver's own list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import nvsmi_live, nvsmi_xml, pci_gpus
from reconciler.facts.live import LiveFact
from reconciler.facts.nvsmi_xml import XmlLog
from reconciler.facts.pci_gpus import PciGpus
from reconciler.model.fact import Absent, Fact, Raw, Unknown, Value

_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{4})?([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\Z")


@dataclass(frozen=True, slots=True)
class Gpus:
    """`smi`: what nvidia-smi -q -x says, or why it says nothing; `status`: its exit status.

    `on_pci`, `in_driver`: PCI addresses of GPUs on the bus and in /proc/driver/nvidia/gpus. `missing`: on the bus and not shown by
    nvidia-smi, such as one that fell off (or, in a container, one that is another's). `agree`: all three name the same GPUs.
    """

    smi: Fact[XmlLog]
    status: Fact[int]
    on_pci: Fact[tuple[str, ...]]
    in_driver: Fact[tuple[str, ...]]
    missing: Fact[tuple[str, ...]]
    agree: Fact[bool]


def parse(raws: tuple[Raw, ...]) -> Fact[Gpus]:
    """Absent(NoDevices) where nothing speaks for a GPU; a nvidia-smi that fails or hangs leaves the counts as they are."""
    call, bus = nvsmi_live.said(raws[0]), pci_gpus.inventory(raws[1])
    smi = _log(call)
    on_pci, in_driver = _on_pci(bus), _in_driver(bus)
    if smi == Absent("NoDevices") and on_pci in (Value(()), Unknown("NoPciBus")) and not _some(in_driver):
        return Absent("NoDevices")
    shown = _shown(smi)
    return Value(
        Gpus(
            smi=smi,
            status=Value(call.value.status) if isinstance(call, Value) else call,
            on_pci=on_pci,
            in_driver=in_driver,
            missing=_missing(on_pci, shown),
            agree=_agree(on_pci, in_driver, shown),
        )
    )


def _log(call: Fact[nvsmi_live.Said]) -> Fact[XmlLog]:
    """The document where there is one, also from a call that failed half way: the messages around it are among its faults."""
    if not isinstance(call, Value):
        return call
    log = nvsmi_xml.parse(call.value.out)
    if isinstance(log, Value) and (log.value.gpus or call.value.status == 0):
        return log
    return nvsmi_live.failure(call.value) or log


def _some(found: Fact[tuple[str, ...]]) -> bool:
    return isinstance(found, Value) and bool(found.value)


def _on_pci(bus: Fact[PciGpus]) -> Fact[tuple[str, ...]]:
    counted = pci_gpus.count(bus)
    if not isinstance(counted, Value) or not isinstance(bus, Value):
        return counted if isinstance(counted, Unknown) else Unknown("NoPciBus")
    return Value(tuple(device.address for device in bus.value.gpus))


def _in_driver(bus: Fact[PciGpus]) -> Fact[tuple[str, ...]]:
    if not isinstance(bus, Value):
        return bus
    named = bus.value.proc
    return Value(tuple(map(_address, named.value))) if isinstance(named, Value) else named


def _address(printed: str) -> str:
    """`00000000:9B:00.0` and `0000:9b:00.0` are the same."""
    found = _ADDRESS.match(printed)
    return found[1].lower() if found else printed[:40]


def _shown(smi: Fact[XmlLog]) -> Fact[tuple[str, ...]]:
    if isinstance(smi, Absent):
        return Value(()) if smi.reason == "NoDevices" else Unknown(smi.reason)
    if not isinstance(smi, Value):
        return smi
    if not smi.value.well_formed:  # one that counts more GPUs than it shows is whole: it leaves out those that are lost
        return Unknown("Truncated")
    buses = [gpu.bus_id for gpu in smi.value.gpus]
    known = tuple(_address(bus.value) for bus in buses if isinstance(bus, Value))
    return Value(known) if len(known) == len(buses) else Unknown("UnreadableAddress")


def _missing(on_pci: Fact[tuple[str, ...]], shown: Fact[tuple[str, ...]]) -> Fact[tuple[str, ...]]:
    if not isinstance(on_pci, Value):
        return on_pci
    if not isinstance(shown, Value):
        return shown
    return Value(tuple(address for address in on_pci.value if address not in shown.value))


def _agree(*counts: Fact[tuple[str, ...]]) -> Fact[bool]:
    known = [set(count.value) for count in counts if isinstance(count, Value)]
    if any(one != known[0] for one in known):
        return Value(False)
    unknown = next((count for count in counts if not isinstance(count, Value)), None)
    return Value(True) if unknown is None else unknown


# what a person or a plan acts on; not how warm, busy or fast it is now
_STATE = (
    "bus_id", "name", "uuid", "serial", "part_number", "vbios", "persistence", "mig", "mig_pending", "ecc", "ecc_pending",
    "compute_mode", "recovery_action", "reset_required", "fabric_state", "fabric_status",
)  # fmt: skip


def _parts(value: Any, *keys: str) -> Any:
    """Some keys of a part that may itself be absent or unknown."""
    return {key: value[key] for key in keys} if isinstance(value, Mapping) and set(keys) <= set(value) else value


def stable(value: Any) -> Any:
    """The link's width is state; its generation is not, for an idle GPU lowers it."""
    smi = value["smi"]
    if isinstance(smi, Mapping) and "gpus" in smi:
        smi = {
            "driver": smi["driver"],
            "cuda": smi["cuda"],
            "complete": smi["complete"],
            "gpus": [_gpu(gpu) for gpu in smi["gpus"]],
        }
    return {"smi": smi, **{key: value[key] for key in ("on_pci", "in_driver", "missing", "agree")}}


def _gpu(gpu: Any) -> Any:
    return {
        **{key: gpu[key] for key in _STATE},
        "pcie": _parts(gpu["pcie"], "generation_max", "width", "width_max"),
        "memory": _parts(gpu["memory"], "total_mib"),
        "power": _parts(gpu["power"], "limit_watts", "limit_default_watts"),
        "remapped": _parts(gpu["remapped"], "pending", "failure"),
        "retired": _parts(gpu["retired"], "pending"),
        "mig_devices": gpu["mig_devices"],
    }


FACT = LiveFact("gpus", lambda about: (nvsmi_live.ask(("-q", "-x")), pci_gpus.ASK), parse, stable, slow=True, gpu=True)
