"""Headlines of a node's host: its names, kernel, clock, settings, mounts, processes, interfaces and hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.seen import is_absent, is_unknown
from reconciler.render.headlines.words import counted, some, there, word
from reconciler.render.text import count, safe


def joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def size(value: Any) -> str:
    """Bytes in powers of 1024: `3.5 TiB`."""
    if not there(value):
        return word(value)
    amount, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if units[0] == "B" or amount >= 100 else f"{amount:.1f} {units[0]}"


def _os(value: Any) -> str:
    pretty = value["fields"].get("PRETTY_NAME", "")
    return word(value["distribution"]) + (f" ({safe(pretty, 60)})" if pretty else "")


def _hostname(value: Any) -> str:
    if value["static"] == value["running"]:
        return word(value["static"])
    return f"{word(value['running'])} now, {word(value['static'])} after a reboot"


def _names(value: Any) -> str:
    names = value["names"]
    own = value["own"]
    unresolved = [name for name, one in names.items() if is_absent(one["addresses"])]
    unknown = [name for name, one in names.items() if is_unknown(one["addresses"])]
    twice = [name for name, one in names.items() if there(one["hosts"]) and len(set(one["hosts"])) > 1]
    looped = [name for name, one in names.items() if one["loopback"] is True and name != "localhost"]
    return joined(
        f"{len(names) - len(unresolved) - len(unknown)} of {count(len(names), 'name')} resolved",
        f"not: {some(unresolved)}" if unresolved else "",
        f"not known: {some(unknown)}" if unknown else "",
        f"to loopback: {some(looped)}" if looped else "",
        f"several lines in /etc/hosts: {some(twice)}" if twice else "",
        "" if there(own) else f"own name {word(own)}",
    )


def _kernel(value: Any) -> str:
    entry, driver = value["next"]["entry"], value["next"]["driver"]
    release = entry.get("release", entry)
    following = "boots next too" if there(release) and release == value["running"] else f"next {word(release)}"
    module = {True: "with an nvidia module", False: "without an nvidia module"}.get(driver, "") if isinstance(driver, bool) else ""
    kernels = f"{len(value['installed'])} installed" if there(value["installed"]) else "installed " + word(value["installed"])
    return joined(f"{word(value['running'])} {word(value['architecture'])}", " ".join(filter(None, (following, module))), kernels)


def _time(value: Any) -> str:
    tracking, daemons = value["tracking"], value["daemons"]
    by = f"daemons: {some(daemons) or 'none'}" if there(daemons) else ""
    if "synced" not in tracking:
        return joined("chrony " + ("not installed" if is_absent(tracking) else "?"), by)
    synced, offset = tracking["synced"], tracking["system_offset_s"]
    if synced is not True:
        return joined("not synchronised" if synced is False else "synchronised: ?", by)
    away = f"{offset * 1e6:+.0f} us" if isinstance(offset, float) else word(offset)
    reachable = [s for s in value["sources"] if s["reachable"]] if there(value["sources"]) else None
    sources = "sources ?" if reachable is None else f"{len(reachable)} of {count(len(value['sources']), 'source')} reachable"
    return joined(f"synchronised to {word(tracking['reference_name'])}, stratum {word(tracking['stratum'])}, {away}", sources, by)


def _sysctl(value: Any) -> str:
    values = value["values"]
    read = sum(there(one) for one in values.values())
    shown = ("net.core.rmem_max", "vm.max_map_count", "vm.swappiness", "kernel.numa_balancing")
    return joined(f"{read} of {count(len(values), 'setting')}", ", ".join(f"{k} {word(values[k])}" for k in shown if k in values))


def _share(space: Any) -> int | None:
    """Percent of what a user could have that is used, as df counts it."""
    if not there(space) or not (isinstance(space["used"], int) and isinstance(space["available"], int)):
        return None
    whole = space["used"] + space["available"]
    return -(-100 * space["used"] // whole) if whole else 100


def _mounts(value: Any) -> str:
    rows = [row for row in value if "point" in row]
    real = [row for row in rows if row["bytes"] not in ({"absent": "Pseudo"}, {"absent": "Covered"})]
    root = next((row for row in reversed(real) if row["point"] == "/"), None)
    unknown = [row["point"] for row in real if is_unknown(row["bytes"])]
    full = []
    for row in real:
        share = max((s for s in (_share(row["bytes"]), _share(row["inodes"])) if s is not None), default=0)
        if share >= 90 and row["type"] not in ("squashfs", "iso9660", "ramfs"):
            full.append(f"{row['point']} {share} %")
    return joined(
        f"{count(len(real), 'mount')} with space",
        f"/ {_share(root['bytes'])} % of {size(root['bytes']['total'])}" if root and _share(root["bytes"]) is not None else "",
        f"nearly full: {some(full)}" if full else "",
        f"not known: {some(unknown)}" if unknown else "",
        f"{len(value) - len(rows)} unreadable" if len(value) > len(rows) else "",
    )


def _limits(value: Any) -> str:
    groups = value["groups"]
    gpu = sum(len(g["pids"]) for g in groups if g["gpu"] is True)
    sure = value["unread"] == 0 and all(there(g["gpu"]) for g in groups)
    shown = [g for g in groups if g["command"] in ("slurmd", "sshd")][:1]
    words = [f"{word(g['command'])} memlock {word(g['limits']['memlock'].get('soft', g['limits']['memlock']))}" for g in shown]
    return joined(
        f"{count(len(groups), 'group')} of {sum(len(g['pids']) for g in groups)} processes",
        f"{gpu} hold a GPU" if gpu else "none holds a GPU" if sure else "none is seen to hold a GPU",
        *words,
        f"{word(value['unread'])} could not be looked at" if value["unread"] else "",
    )


def _units(value: Any) -> str:
    failed = [name for name, unit in value.items() if unit["active"] == "failed"]
    again = [f"{name} {unit['restarts']}" for name, unit in value.items() if isinstance(unit["restarts"], int) and unit["restarts"]]
    return joined(
        f"{count(len(failed), 'unit')} failed of {len(value)}" + (f": {some(failed)}" if failed else ""),
        f"restarts: {some(again)}" if again else "",
    )


def _links(value: Any) -> str:
    real = {name: link for name, link in value.items() if there(link["pci"])}
    off = [name for name, link in real.items() if link["carrier"] is False or is_absent(link["carrier"])]
    unsure = [name for name, link in real.items() if is_unknown(link["carrier"])]
    speeds = counted(f"{link['speed']} Mbit/s" if isinstance(link["speed"], int) else link["speed"] for link in real.values())
    errors = [
        name
        for name, link in real.items()
        if any(isinstance(n := link["counters"].get(k), int) and n for k in ("rx_errors", "tx_errors"))
    ]
    return joined(
        f"{count(len(real), 'device')}: {speeds}" if real else "no device",
        f"{len(value) - len(real)} virtual" if len(value) > len(real) else "",
        f"no carrier: {some(off)}" if off else "",
        f"carrier not known: {some(unsure)}" if unsure else "",
        f"errors: {some(errors)}" if errors else "",
    )


def _rdma(value: Any) -> str:
    adapters = value["adapters"]
    states = value["modules"]
    loaded = [name for name, state in states.items() if state is True]
    none = "no RDMA module loaded" if all(state is False for state in states.values()) else "modules ?"
    modules = f"modules: {', '.join(loaded)}" if loaded else none
    if not there(adapters):
        return joined("no adapter" if is_absent(adapters) else "adapters ?", modules)
    ports = [(f"{name}/{n}", port) for name, one in adapters.items() for n, port in one["ports"].items()]
    down = [name for name, port in ports if there(port["state"]) and port["state"] != "ACTIVE"]
    unsure = [name for name, port in ports if not there(port["state"])]
    rates = counted(f"{word(p['rate_gbps'])} Gbit/s {word(p['link_layer'])}" for _, p in ports)
    firmware = counted(one["firmware"] for one in adapters.values())
    return joined(
        f"{count(len(adapters), 'adapter')}: {rates}",
        f"firmware {firmware}",
        f"not active: {some(down)}" if down else "",
        f"state not known: {some(unsure)}" if unsure else "",
        "all active" if ports and not down and not unsure else "",
        "no nvidia_peermem" if states["nvidia_peermem"] is False else "",
    )


def _hardware(value: Any) -> str:
    cpus, dmi = value["cpus"], value["dmi"]
    numa = f"{len(value['numa'])} NUMA" if there(value["numa"]) else ""
    machine = " ".join(word(dmi[k]) for k in ("sys_vendor", "product_name") if there(dmi[k]))
    processors = f"{word(cpus['sockets'])} x {word(cpus['model'])}, {word(cpus['cores'])} cores, {word(cpus['threads'])} threads"
    virtual = "virtual" if cpus["hypervisor"] is True else ""
    return joined(machine, virtual, processors, numa, f"{size(value['memory']['total'])} memory")


def _disks(value: Any) -> str:
    arrays = {name: disk["array"] for name, disk in value.items() if there(disk["array"])}
    lacking = [name for name, array in arrays.items() if isinstance(array["degraded"], int) and array["degraded"]]
    disks = [disk for disk in value.values() if not there(disk["array"]) and not there(disk["name"])]
    sizes = counted(f"{size(disk['bytes'])}{' ' + word(disk['model']) if there(disk['model']) else ''}" for disk in disks)
    return joined(sizes, f"arrays: {some(arrays)}" if arrays else "", f"degraded: {some(lacking)}" if lacking else "")


def _slurm(value: Any) -> str:
    nodes = value["node"].get("nodes", []) if isinstance(value["node"], dict) else []
    first = next((node for node in nodes if "states" in node), None)
    daemons = f"daemons: {some(value['daemons']) or 'none'}" if there(value["daemons"]) else ""
    if first is None:
        return joined(f"node {word(value['node']) if not nodes else '?'}", daemons)
    states = "+".join(map(safe, first["states"])) if there(first["states"]) else word(first["states"])
    return joined(states, f"reason: {word(first['reason'])}" if there(first["reason"]) else "", daemons)


HEADLINES: Mapping[str, Callable[[Any], str]] = {
    "os-release": _os,
    "hostname": _hostname,
    "names": _names,
    "kernel": _kernel,
    "time-sync": _time,
    "sysctl": _sysctl,
    "mounts": _mounts,
    "limits": _limits,
    "units": _units,
    "links": _links,
    "rdma": _rdma,
    "hardware": _hardware,
    "disks": _disks,
    "slurm": _slurm,
}
