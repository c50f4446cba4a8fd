"""PCI devices of one vendor as /sys tells them, and what the NVIDIA driver has taken of them."""

import os
from typing import Any, Dict, List, Union

from reconciler.node.work import CODES, first_bytes, head

FILES = ("class", "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node", "enable", "power_state")
COUNTERS = ("aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal")
# the device itself is read for these: one that is suspended would wake up
LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`vendor` such as 0x10de; `classes`: what the class has to begin with; `root` stands before /sys and /proc.

    -> {"devices": {address: {file: text or {"error": code}, "driver", "config": its first bytes in hexadecimal}}, or one error,
    "proc": names below /proc/driver/nvidia/gpus, or an error}.
    """
    root = arguments.get("root", "")
    at = root + "/sys/bus/pci/devices"
    answer: Dict[str, Any] = {"proc": _names(root + "/proc/driver/nvidia/gpus"), "devices": _names(at)}
    if isinstance(answer["devices"], list):
        found = {}
        for address in answer["devices"]:
            folder = at + "/" + address + "/"
            kind = head(folder + "class", 1 << 12)
            # the class first: it is enough for most devices
            if isinstance(kind, str) and not kind.startswith(tuple(arguments["classes"])):
                continue
            vendor = head(folder + "vendor", 1 << 12)
            if not isinstance(vendor, str) or vendor.strip() == arguments["vendor"]:
                found[address] = dict(_device(folder), vendor=vendor)
        answer["devices"] = found
    return answer


def _names(folder: str) -> Union[List[str], Dict[str, str]]:
    try:
        return sorted(os.listdir(folder))
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}


def _device(folder: str) -> Dict[str, Any]:
    asleep = head(folder + "power/runtime_status", 1 << 12) == "suspended\n"
    about: Dict[str, Any] = {name: head(folder + name, 1 << 12) for name in FILES + COUNTERS}
    about.update({name: {"error": "asleep"} if asleep else head(folder + name, 1 << 12) for name in LINK})
    try:
        about["driver"] = os.path.basename(os.readlink(folder + "driver"))
    except OSError as e:
        about["driver"] = {"error": CODES.get(e.errno or 0, "io")}
    config = {"error": "asleep"} if asleep else first_bytes(folder + "config", 4)
    about["config"] = config.hex() if isinstance(config, bytes) else config
    return about
