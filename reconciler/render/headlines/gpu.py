"""The GPUs of a node and how they are joined, each in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.seen import is_absent, is_unknown
from reconciler.render.headlines.words import counted, some, there, word
from reconciler.render.reasons import sentence
from reconciler.render.text import count, safe

_SHOWN = 3  # GPUs that are named in one line


def _why(value: Any) -> str:
    """Why something is not there, in a few words."""
    return sentence(str(value["unknown"]), value) if is_unknown(value) else sentence(str(value["absent"]), {})


def _gpus(value: Any) -> str:
    smi = value["smi"]
    parts = [f"nvidia-smi: {_why(smi)}"] if not there(smi) else _shown(smi)
    if not there(smi) and isinstance(value["on_pci"], list):
        parts.append(f"{count(len(value['on_pci']), 'GPU')} on the PCI bus")
    if isinstance(value["missing"], list) and value["missing"]:
        parts.append(f"not shown by nvidia-smi: {some(value['missing'], _SHOWN)}")
    elif value["agree"] is False:
        parts.append("PCI bus, driver and nvidia-smi name different GPUs")
    return "; ".join(parts)


def _shown(smi: Any) -> list[str]:
    gpus = smi["gpus"]
    parts = [f"{counted(gpu['name'] for gpu in gpus)}, driver {word(smi['driver'])}"]
    parts += [_where(what, [gpu for gpu in gpus if holds(gpu)], gpus) for what, holds in _DEVIATIONS if any(map(holds, gpus))]
    parts += [safe(fault["said"], 120) for fault in smi["faults"][:_SHOWN]]
    return [*parts, *(["the answer is not whole"] if not smi["complete"] else [])]


def _where(what: str, those: list[Any], every: list[Any]) -> str:
    if len(those) == len(every):
        return what if len(every) == 1 else f"{what} (all)"
    return f"{what} ({some((gpu['bus_id'] for gpu in those), _SHOWN)})"


def _part(gpu: Any, part: str, key: str) -> Any:
    """A field of a part that may itself be absent or unknown."""
    return gpu[part].get(key) if isinstance(gpu[part], Mapping) else None


def _narrow(gpu: Any) -> bool:
    now, most = _part(gpu, "pcie", "width"), _part(gpu, "pcie", "width_max")
    return isinstance(now, int) and isinstance(most, int) and now < most


def _recovery(gpu: Any) -> bool:
    return isinstance(gpu["recovery_action"], str) and gpu["recovery_action"] != "None"


def _pending(gpu: Any, name: str) -> bool:
    return isinstance(gpu[f"{name}_pending"], bool) and isinstance(gpu[name], bool) and gpu[f"{name}_pending"] != gpu[name]


_HOT = ("hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal")
_DEVIATIONS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("reset required", lambda gpu: gpu["reset_required"] is True),
    ("a recovery action is asked for", _recovery),
    ("row remap failed", lambda gpu: _part(gpu, "remapped", "failure") is True),
    ("row remap pending", lambda gpu: _part(gpu, "remapped", "pending") is True),
    ("page retirement pending", lambda gpu: _part(gpu, "retired", "pending") is True),
    ("PCIe narrower than it could be", _narrow),
    ("throttled", lambda gpu: any(_part(gpu, "throttle", key) is True for key in _HOT)),
    ("ECC changes at the next reset", lambda gpu: _pending(gpu, "ecc")),
    ("MIG changes at the next reset", lambda gpu: _pending(gpu, "mig")),
    ("ECC off", lambda gpu: gpu["ecc"] is False),
    ("MIG on", lambda gpu: gpu["mig"] is True),
    ("persistence off", lambda gpu: gpu["persistence"] is False),
    ("something of it cannot be read", lambda gpu: is_unknown(gpu["uuid"]) or is_unknown(gpu["name"])),
)


def _topology(value: Any) -> str:
    words = ", ".join(f"{n} x {safe(name)}" for name, n in value["link_counts"].items()) or "no pairs"
    broken = [f"rows missing: {some(value['missing_rows'], _SHOWN)}"] if value["missing_rows"] else []
    narrow = [f"{count(len(value['narrower_pairs']), 'pair')} with fewer NVLinks"] if value["narrower_pairs"] else []
    nics = [count(len(value["nics"]), "NIC")] if value["nics"] else []
    return "; ".join([f"{count(len(value['gpus']), 'GPU')}: {words}", *nics, *narrow, *broken])


def _nvlink(value: Any) -> str:
    links = [gpu["links"] for gpu in value["gpus"]]
    numbers = counted(len(each) if isinstance(each, list) else each for each in links)
    down = sum(len(gpu["inactive"]) for gpu in value["gpus"] if isinstance(gpu["inactive"], list))
    silent = sum(is_absent(each) for each in links)
    parts = [f"{count(down, 'link')} down"] if down else []
    parts += [f"all links inactive on {silent} of {count(len(links), 'GPU')}"] if silent else []
    return "; ".join([f"links a GPU: {numbers}", *parts, *(["uneven"] if value["uneven"] else [])])


def _p2p(value: Any) -> str:
    return "; ".join(f"{way}: {_why(value[way]) if not there(value[way]) else _pairs(value[way])}" for way in ("read", "write"))


def _pairs(matrix: Any) -> str:
    return ", ".join(f"{n} x {safe(name)}" for name, n in matrix["link_counts"].items()) or "no pairs"


HEADLINES: Mapping[str, Callable[[Any], str]] = {"gpus": _gpus, "topology": _topology, "nvlink": _nvlink, "p2p": _p2p}
