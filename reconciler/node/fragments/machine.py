"""The processors and memories of this node: which hang together, and what the first processor says of itself."""

import glob
import os
from typing import Any, Dict


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`root`: `/` but in tests.

    -> {"online": list as /sys writes it, "cores": [list], "sockets": [list], "first": text, "numa": {node: {file: text}}}.
    A core and a socket are the processors in them, each read at one of its members. `first`: the first block of /proc/cpuinfo;
    the rest is not read, for the kernel measures the clock of every processor on the way.
    """
    root = arguments["root"]
    at = os.path.join(root, "sys/devices/system/cpu")
    online = _read(os.path.join(at, "online"))
    found: Dict[str, Any] = {"online": online, "first": _read(os.path.join(root, "proc/cpuinfo")).split("\n\n")[0]}
    for name, file in (("cores", "thread_siblings_list"), ("sockets", "core_siblings_list")):
        seen = set()
        found[name] = []
        for cpu in numbers(online):
            if cpu not in seen:
                said = _read(os.path.join(at, "cpu%d" % cpu, "topology", file))
                found[name].append(said)
                seen.update(numbers(said))
    nodes = os.path.join(root, "sys/devices/system/node/node[0-9]*")
    found["numa"] = {os.path.basename(node)[4:]: _node(node) for node in sorted(glob.glob(nodes))}
    return found


def _node(at: str) -> Dict[str, str]:
    return {name: _read(os.path.join(at, name)) for name in ("cpulist", "distance", "meminfo")}


def numbers(said: str) -> Any:
    """`0-3,8` as 0, 1, 2, 3, 8."""
    for part in said.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield number


def _read(path: str) -> str:
    with open(path, "rb", 0) as f:
        return f.read(1 << 12).decode("utf-8", "replace")
