"""nvidia-smi, where the driver is loaded: where it is not, nvidia-smi would load it, and a look must not."""

import os
import signal
import subprocess
from subprocess import DEVNULL, PIPE
from typing import Any, Dict, List

from reconciler.node.work import CODES, ENVIRONMENT

LIMIT = 6 << 20
ALSO = ":/usr/local/nvidia/bin"  # where containers get it
LONE = ("0x03", "0x0680")  # classes: display controllers; bridges of another kind (NVSwitch)


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`calls`: argument lists; `seconds` for each, which run one after another; `root` stands before /proc and /sys.

    -> {"loaded", "hardware": NVIDIA devices on the PCI bus (None where that cannot be known; only where it is not loaded),
    "calls": [{"out", "err", "status"} or {"error"}]}.
    """
    root = arguments.get("root", "")
    if not any(os.path.exists(root + path) for path in ("/proc/driver/nvidia/version", "/sys/module/nvidia")):
        return {"loaded": False, "hardware": _hardware(root + "/sys/bus/pci/devices"), "calls": []}
    return {"loaded": True, "calls": [_call(["nvidia-smi"] + call, arguments["seconds"]) for call in arguments["calls"]]}


def _call(argv: List[str], seconds: float) -> Dict[str, Any]:
    environment = dict(ENVIRONMENT, PATH=ENVIRONMENT["PATH"] + ALSO)
    try:
        process = subprocess.Popen(argv, env=environment, cwd="/", stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # one that hangs in the kernel does not end by this: it is left behind, and said to have passed its deadline
        os.kill(process.pid, signal.SIGKILL)
        return {"error": "deadline"}
    if len(out) > LIMIT:
        return {"error": "too-large"}
    return {"out": out.decode("utf-8", "replace"), "err": err[-4096:].decode("utf-8", "replace"), "status": process.returncode}


def _hardware(folder: str) -> Any:
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    found = 0
    for name in names:
        try:
            with open(folder + "/" + name + "/class") as f:
                if not f.read().startswith(LONE):
                    continue
            with open(folder + "/" + name + "/vendor") as f:
                found += f.read().strip() == "0x10de"
        except FileNotFoundError:  # it was taken out meanwhile
            continue
    return found
