"""Limits of processes that matter: those of services, those that are named, and those that hold a GPU."""

import os
import re
from typing import Any, Dict, List

_UNIT = re.compile(r"([^/]+\.(?:service|scope))(?:/|$)")


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`commands`: names of programs that count wherever they run; `proc`: where processes are (`/proc` but in tests).

    -> {"groups": [{"unit", "command", "gpu", "limits", "pids"}], "unread": pids that could not be read}. Processes of one unit and
    command with equal limits are one group. `gpu`: it has a /dev/nvidia file open, null where its files could not be listed.
    """
    groups: Dict[Any, List[int]] = {}
    unread: List[int] = []
    for name in os.listdir(arguments["proc"]):
        if not name.isdigit():
            continue
        at = os.path.join(arguments["proc"], name)
        try:
            if not os.path.exists(os.path.join(at, "exe")) and not _read(at, "cmdline"):
                continue  # a thread of the kernel
            unit, command, gpu = _unit(_read(at, "cgroup")), _read(at, "comm").rstrip("\n"), _holds_gpu(at)
            if unit.endswith(".service") or gpu or command in arguments["commands"]:
                groups.setdefault((unit, command, gpu, _read(at, "limits")), []).append(int(name))
            elif gpu is None:
                unread.append(int(name))  # nobody knows whether it matters
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            unread.append(int(name))
    rows = [dict(zip(("unit", "command", "gpu", "limits", "pids"), key + (sorted(pids),))) for key, pids in groups.items()]  # noqa: B905
    rows.sort(key=lambda row: row["pids"])
    return {"groups": rows, "unread": sorted(unread)}


def _read(at: str, name: str) -> str:
    with open(os.path.join(at, name), "rb") as f:
        return str(f.read(1 << 16), "utf-8", "replace")


def _unit(said: str) -> str:
    """The unit that systemd put it in: of the unified hierarchy, or of the one that it names its own."""
    for line in said.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (number == "0" or names == "name=systemd") and _UNIT.search(path):
            return str(_UNIT.findall(path)[-1])
    return ""


def _holds_gpu(at: str) -> Any:
    folder = os.path.join(at, "fd")
    try:
        names = os.listdir(folder)
    except PermissionError:
        return None
    for name in names:
        try:
            if os.readlink(os.path.join(folder, name)).startswith("/dev/nvidia"):
                return True
        except FileNotFoundError:
            continue  # closed meanwhile
        except PermissionError:
            return None
    return False
