"""Live facts of this very machine, against what other programs say of it."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import hardware, limits
from reconciler.facts.catalogue import BY_NAME
from reconciler.facts.formats import plain
from reconciler.facts.live import About
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.observe import ask
from reconciler.render.headlines import headline
from reconciler.transport.local import LocalTransport

FACTS = (
    "hostname",
    "os-release",
    "names",
    "kernel",
    "time-sync",
    "sysctl",
    "mounts",
    "limits",
    "units",
    "links",
    "hardware",
    "disks",
)


def said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def links_before() -> list[Any]:
    rows: list[Any] = json.loads(said("ip", "-j", "link"))
    return rows


@pytest.fixture(scope="module")
def seen(links_before: list[Any]) -> dict[str, Any]:
    """Every fact of this machine as a plain value, through the real program."""
    transport = LocalTransport()
    channel = transport.open(DesiredNode("here", SshAccess("localhost"), ()), 20)
    about = About(socket.gethostname(), {"localhost": "127.0.0.1"})
    try:
        found, _ = ask(channel, tuple(BY_NAME[name].probe(about) for name in (*FACTS, "rdma", "slurm")))
    finally:
        channel.close()
        transport.close()
    return {name: plain(BY_NAME[name].read(reading.raws)) for name, reading in found.readings.items()}


def test_every_fact_has_a_line(seen: dict[str, Any]) -> None:
    for name, value in seen.items():
        assert headline(name, value)
        assert not headline(name, value).startswith("unknown"), name


def test_mounts_are_those_of_findmnt(seen: dict[str, Any]) -> None:
    columns = "TARGET,SOURCE,FSTYPE,OPTIONS,FSROOT,MAJ:MIN,PROPAGATION"
    theirs = json.loads(said("findmnt", "-J", "--list", "-o", columns))["filesystems"]
    ours = [row for row in seen["mounts"] if "point" in row]
    assert len(ours) == len(seen["mounts"])
    found = {(row["point"], row["type"], row["device"], row["root"]) for row in ours}
    # mounts that come and go with others' work on this machine are in only one of the two
    common = {(row["target"], row["fstype"], row["maj:min"], row["fsroot"]) for row in theirs} & found
    assert len(common) > 0.7 * max(len(found), 1)
    assert {row["point"]: row["type"] for row in ours}["/"] == next(row["fstype"] for row in theirs if row["target"] == "/")
    shared = {row["target"] for row in theirs if row["propagation"].startswith("shared")}
    assert {row["point"] for row in ours if any(p.startswith("shared:") for p in row["propagation"])} & shared == (
        {row["point"] for row in ours} & shared
    )


def test_space_is_that_of_df(seen: dict[str, Any]) -> None:
    total, available = said("df", "-B1", "--output=size,avail", "/").splitlines()[1].split()
    inodes = said("df", "--output=itotal", "/").splitlines()[1].strip()
    root = [row for row in seen["mounts"] if row["point"] == "/"][-1]
    assert root["bytes"]["total"] == int(total)
    assert abs(root["bytes"]["available"] - int(available)) < 0.02 * int(total)
    assert root["inodes"]["total"] == int(inodes)


def test_interfaces_are_those_of_ip(seen: dict[str, Any], links_before: list[Any]) -> None:
    # those that others made or changed meanwhile are left out
    theirs = {row["ifname"]: row for row in json.loads(said("ip", "-j", "link")) if row in links_before}
    both = set(theirs) & set(seen["links"])
    assert "lo" in both
    assert len(both) >= 0.7 * len(theirs)
    for name in both:
        ours = seen["links"][name]
        assert (ours["mtu"], ours["up"]) == (theirs[name]["mtu"], "UP" in theirs[name]["flags"])
        assert ours["state"] == theirs[name]["operstate"].lower()
        assert ours["master"] == theirs[name].get("master", {"absent": "NoMaster"})
        if theirs[name]["link_type"] == "ether":
            assert ours["address"] == theirs[name]["address"]


def test_counters_are_those_of_ip(seen: dict[str, Any]) -> None:
    theirs = next(row for row in json.loads(said("ip", "-j", "-s", "link")) if row["ifname"] == "lo")["stats64"]
    ours = seen["links"]["lo"]["counters"]
    for side in ("rx", "tx"):
        assert 0 <= theirs[side]["bytes"] - ours[f"{side}_bytes"] < 1 << 30
        assert ours[f"{side}_errors"] <= theirs[side]["errors"]


def test_names_are_those_of_getent(seen: dict[str, Any]) -> None:
    for name, found in seen["names"]["names"].items():
        theirs = dict.fromkeys(line.split()[0] for line in said("getent", "ahosts", name).splitlines())
        assert sorted(found["addresses"]) == sorted(theirs)
    assert seen["names"]["names"]["localhost"]["loopback"] is True


def test_limits_are_those_of_the_kernel(seen: dict[str, Any]) -> None:
    """Of this process, through the same parser; the fact itself shows services only."""
    found = plain(limits.table(_value(Path("/proc/self/limits").read_text())))
    numbers = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK, "stack": resource.RLIMIT_STACK}
    numbers |= {"nproc": resource.RLIMIT_NPROC, "core": resource.RLIMIT_CORE}
    for name, number in numbers.items():
        ours = tuple(found[name][side] for side in ("soft", "hard"))
        assert ours == tuple("unlimited" if n == resource.RLIM_INFINITY else str(n) for n in resource.getrlimit(number))


def _value(text: str) -> Any:
    from reconciler.model.fact import Value

    return Value(text)


def test_a_process_with_other_limits_is_found(seen: dict[str, Any]) -> None:
    """One that runs under a name that counts, with a limit of its own."""
    from reconciler.node.fragments import limits as fragment

    code = "import resource,sys;resource.setrlimit(resource.RLIMIT_NOFILE,(77,88));print('up',flush=True);sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline() == b"up\n"
        command = Path(f"/proc/{child.pid}/comm").read_text().strip()
        groups = fragment.look({"commands": [command], "proc": "/proc"})["groups"]
        child.communicate()
    mine = next(group for group in groups if child.pid in group["pids"])
    assert plain(limits.table(_value(mine["limits"])))["nofile"] == {"soft": "77", "hard": "88"}


def test_the_machine_is_that_of_lscpu(seen: dict[str, Any]) -> None:
    theirs = {row["field"].rstrip(":"): row["data"] for row in _flat(json.loads(said("lscpu", "-J"))["lscpu"])}
    cpus = seen["hardware"]["cpus"]
    assert cpus["model"] == theirs["Model name"]
    assert cpus["threads"] == os.cpu_count()
    sockets, cores = int(theirs["Socket(s)"]), int(theirs["Core(s) per socket"])
    assert (cpus["sockets"], cpus["cores"]) == (sockets, sockets * cores)
    assert cpus["hypervisor"] is ("hypervisor" in theirs["Flags"].split())
    assert seen["hardware"]["memory"]["total"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    online = theirs["On-line CPU(s) list"]
    assert plain(hardware.count(online)) == os.cpu_count()


def _flat(rows: Any) -> list[Any]:
    return [found for row in rows for found in (row, *_flat(row.get("children", [])))]


def test_disks_are_those_of_lsblk(seen: dict[str, Any]) -> None:
    rows = json.loads(said("lsblk", "-J", "-b", "-d", "-o", "NAME,SIZE,RO,ROTA,RM"))["blockdevices"]
    theirs = {row["name"]: row for row in rows if not row["name"].startswith(("loop", "ram", "zram"))}
    assert set(seen["disks"]) == set(theirs)
    for name, disk in seen["disks"].items():
        row = theirs[name]
        assert (disk["bytes"], disk["read_only"], disk["rotational"], disk["removable"]) == (
            int(row["size"]),
            row["ro"],
            row["rota"],
            row["rm"],
        )


def test_settings_are_those_of_sysctl(seen: dict[str, Any]) -> None:
    values = seen["sysctl"]["values"]
    there = {key: value for key, value in values.items() if isinstance(value, str)}
    assert len(there) > 30
    for key, value in there.items():
        assert value == " ".join(said("sysctl", "-n", key).split()), key
    for key in set(values) - set(there):
        assert values[key] == {"absent": "Empty"} or not Path("/proc/sys", key.replace(".", "/")).exists()


def test_kernel_and_names_are_those_of_uname(seen: dict[str, Any]) -> None:
    found = os.uname()
    assert (seen["kernel"]["running"], seen["kernel"]["architecture"]) == (found.release, found.machine)
    assert seen["kernel"]["command_line"] == Path("/proc/cmdline").read_text().strip()
    assert seen["hostname"]["running"] == found.nodename == seen["names"]["own"]
