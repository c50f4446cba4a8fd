"""Fragments that look at a host: on trees as a node has them, and on what does not answer."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import kernel, mounts
from reconciler.facts.formats import plain
from reconciler.model.fact import Ask, Raw
from reconciler.node import work
from reconciler.node.fragments import devices, kernels, limits, machine, resolve
from reconciler.node.fragments import mounts as fragment
from tests.node.test_fragments import asked


def tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        at = root / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


# ---- devices


def test_files_links_and_tables_of_devices(tmp_path: Path) -> None:
    zero = "0000\n"
    tree(tmp_path, {"a/state": "up\n", "a/long": "x" * 50, "a/deep/er": "1", "b/state": "down\n"})
    tree(tmp_path, {f"a/gids/{i}": "fe80\n" if i in (0, 3) else zero for i in range(40)} | {"a/types/3": "v2\n"})
    (tmp_path / "a/driver").symlink_to("../drivers/mlx5")
    group = {
        "at": f"{tmp_path}/*",
        "files": ["state", "long", "deep/er", "none", "deep", "state/below"],
        "links": ["driver", "none"],
        "tables": [{"files": ["gids/%d", "types/%d"], "empty": "0000", "gap": 4}],
    }
    found = devices.look({"groups": {"g": group, "nothing": {"at": f"{tmp_path}/none*"}}, "limit": 20})
    a = {"state": "up\n", "long": "x" * 20, "deep/er": "1", "deep": {"error": "EISDIR"}, "driver": "../drivers/mlx5"}
    a |= {"gids/0": "fe80\n", "gids/3": "fe80\n", "types/3": "v2\n"}
    assert found == {"g": {f"{tmp_path}/a": a, f"{tmp_path}/b": {"state": "down\n"}}, "nothing": {}}


def test_a_table_ends_where_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a/gids/0").mkdir(parents=True)  # a directory: every read of it fails
    group = {"at": f"{tmp_path}/*", "tables": [{"files": ["gids/%d"], "empty": "", "gap": 16}]}
    assert devices.look({"groups": {"g": group}, "limit": 20}) == {"g": {f"{tmp_path}/a": {}}}


# ---- kernels


def elf(version: str) -> bytes:
    """A 64-bit ELF file with a section .modinfo, as a kernel module has one."""
    info = f"license=Dual MIT/GPL\0srcversion=ABC\0version={version}\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    sections = [
        struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, len(info), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 10, 3, 0, 0, 64 + len(info), len(names), 0, 0, 1, 0),
    ]
    at = 64 + len(info) + len(names)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 3, 2)
    return head + info + names + b"".join(sections)


def test_kernels_and_their_nvidia_modules(tmp_path: Path) -> None:
    modules = tmp_path / "lib/modules"
    tree(
        modules,
        {
            "5.14.0-1/vmlinuz": "",
            "5.14.0-1/modules.dep": "kernel/fs/xfs.ko.xz:\nextra/nvidia.ko.xz: kernel/x.ko\n",
            "5.14.0-1/extra/nvidia.ko.xz": b"\xfd7zXZ",
            "5.14.0-1/extra/nvidia-uvm.ko.xz": "",
            "6.1.0-2/modules.dep": "kernel/drivers/video/nvidiafb.ko:\n",
            "6.1.0-2/updates/dkms/nvidia.ko": elf("570.86.15"),
            "6.8.0-3/kernel/nvidia-570/bits/nvidia.ko": elf("570.1")[:200],
            "6.8.0-3/kernel/drivers/video/nvidia.ko.zst": "",
            "6.8.0-3/kernel/drivers/gpu/nvidia.ko": "not looked for here",
            "7-empty/keep": "",
        },
    )
    tree(tmp_path, {"boot/vmlinuz-6.1.0-2": "", "boot/loader/entries/a.conf": "title A\n"})
    (modules / "5.14.0-1/weak-updates").mkdir()
    (modules / "5.14.0-1/weak-updates/nvidia.ko").symlink_to(modules / "6.1.0-2/updates/dkms/nvidia.ko")
    (tmp_path / "usr/src/kernels/5.14.0-1").mkdir(parents=True)
    (modules / "5.14.0-1/build").symlink_to(tmp_path / "usr/src/kernels/5.14.0-1")
    (modules / "6.1.0-2/build").symlink_to(tmp_path / "usr/src/gone")
    found = kernels.look({"root": str(tmp_path)})
    headers = {release: about.pop("headers") for release, about in found["kernels"].items()}
    assert headers == {"5.14.0-1": True, "6.1.0-2": False, "6.8.0-3": False, "7-empty": False}
    assert found["kernels"] == {
        "5.14.0-1": {"image": True, "listed": True, "modules": {"extra/nvidia.ko.xz": None, "weak-updates/nvidia.ko": "570.86.15"}},
        "6.1.0-2": {"image": True, "listed": False, "modules": {"updates/dkms/nvidia.ko": "570.86.15"}},
        "6.8.0-3": {
            "image": False,
            "listed": None,
            "modules": {"kernel/nvidia-570/bits/nvidia.ko": None, "kernel/drivers/video/nvidia.ko.zst": None},
        },
        "7-empty": {"image": False, "listed": None, "modules": {}},
    }
    assert found["entries"] == {"/boot/loader/entries/a.conf": "title A\n"}
    assert (found["running"], found["machine"]) == (os.uname().release, os.uname().machine)


def test_a_node_without_kernels(tmp_path: Path) -> None:
    assert kernels.look({"root": str(tmp_path)})["kernels"] == {"error": "missing"}


@pytest.mark.parametrize("cut", range(0, len(elf("570.86.15")), 7))
def test_a_damaged_module_has_no_version_and_loses_nothing(tmp_path: Path, cut: int) -> None:
    tree(tmp_path, {"lib/modules/1/extra/nvidia.ko": elf("570.86.15")[:cut], "lib/modules/1/updates/nvidia.ko": elf("1")})
    found = kernels.look({"root": str(tmp_path)})["kernels"]["1"]["modules"]
    assert found == {"extra/nvidia.ko": None, "updates/nvidia.ko": "1"}
    answer = kernel.installed(raw_fragment(kernels.look({"root": str(tmp_path)})))
    assert plain(answer)["1"]["modules"]["extra/nvidia.ko"] == {"unknown": "NotSaid", "detail": ""}


def raw_fragment(value: Any) -> Any:
    from reconciler.facts.raw import fragment as read

    return read(Raw(json.dumps(value).encode(), status=0))


# ---- processors, limits, names


def test_processors_of_two_sockets(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"sys/devices/system/cpu/online": "0-3,8\n", "proc/cpuinfo": "processor: 0\n\nprocessor: 1\n"}
    siblings = {0: ("0,2", "0,2,8"), 1: ("1,3", "1,3"), 2: ("0,2", "0,2,8"), 3: ("1,3", "1,3"), 8: ("8", "0,2,8")}
    for cpu, (core, socket) in siblings.items():
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = core + "\n"
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/core_siblings_list"] = socket + "\n"
    files |= {f"sys/devices/system/node/node0/{name}": name for name in ("cpulist", "distance", "meminfo")}
    found = machine.look({"root": str(tree(tmp_path, files))})
    assert (found["cores"], found["sockets"]) == (["0,2\n", "1,3\n", "8\n"], ["0,2,8\n", "1,3\n"])
    assert found["first"] == "processor: 0"
    assert found["numa"] == {"0": {"cpulist": "cpulist", "distance": "distance", "meminfo": "meminfo"}}


def process(root: Path, pid: int, unit: str, command: str, limit: str, fds: dict[str, str] | None = None) -> None:
    at = tree(root / str(pid), {"cgroup": unit, "comm": command + "\n", "limits": limit, "cmdline": command})
    (at / "fd").mkdir()
    for name, target in (fds or {}).items():
        (at / "fd" / name).symlink_to(target)


def test_processes_that_matter_in_groups(tmp_path: Path) -> None:
    gpu = {"3": "/dev/null", "7": "/dev/nvidia0"}
    process(tmp_path, 10, "0::/system.slice/slurmd.service\n", "slurmd", "A")
    process(tmp_path, 11, "9:name=systemd:/system.slice/slurmd.service/step\n0::/\n", "slurmd", "A")
    process(tmp_path, 12, "0::/user.slice/user-0.slice/session-1.scope\n", "python3", "B", gpu)
    process(tmp_path, 13, "0::/user.slice/user-0.slice/session-1.scope\n", "bash", "B", {"0": "/dev/pts/0"})
    process(tmp_path, 14, "0::/\n", "sshd", "C")
    process(tmp_path, 15, "0::/system.slice/slurmd.service\n", "slurmd", "D")
    tree(tmp_path, {"16/cmdline": "", "17/cmdline": "ended", "self/x": "", "version": ""})  # a kernel thread, one that has ended
    found = limits.look({"commands": ["sshd"], "proc": str(tmp_path)})
    assert [(g["unit"], g["command"], g["gpu"], g["limits"], g["pids"]) for g in found["groups"]] == [
        ("slurmd.service", "slurmd", False, "A", [10, 11]),
        ("session-1.scope", "python3", True, "B", [12]),
        ("", "sshd", False, "C", [14]),
        ("slurmd.service", "slurmd", False, "D", [15]),
    ]
    assert found["unread"] == []


def test_names_side_by_side_and_one_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resolve.look({"names": ["localhost", "no-such-host.invalid", "a" * 300], "seconds": 20})
    assert "127.0.0.1" in found["localhost"] or "::1" in found["localhost"]
    assert set(found["no-such-host.invalid"]) == {"error"}
    assert set(found["a" * 300]) == {"error"}
    monkeypatch.setattr(resolve, "_one", lambda name: time.sleep(60) if name == "slow" else ["10.0.0.1"])
    began = time.monotonic()
    assert resolve.look({"names": ["slow", "quick"], "seconds": 0.3}) == {"slow": {"error": "deadline"}, "quick": ["10.0.0.1"]}
    assert time.monotonic() - began < 5


def test_the_program_ends_although_a_name_does_not_answer() -> None:
    """The thread that hangs must not keep the process of the fragment."""
    code = "import time;from reconciler.node import work;from reconciler.node.fragments import resolve;" + (
        "resolve._one=lambda n: time.sleep(60);"
        "a={'names':['x'],'seconds':0.2};"
        "print(work.run_all([{'function':lambda:resolve.look(a),'deadline':20}])[0])"
    )
    began = time.monotonic()
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "deadline" in said
    assert time.monotonic() - began < 10


# ---- mounts


def hanging(*points: bytes) -> Callable[[bytes], Any]:
    return lambda point: time.sleep(60) if point in points else [point.decode()]


def test_a_mount_that_hangs_costs_its_own_deadline_only() -> None:
    queues = [[(1, b"a"), (2, b"hangs"), (3, b"c")], [(4, b"d")], [(5, b"hangs")], []]
    began = time.monotonic()
    found = fragment.follow(queues, 0.4, hanging(b"hangs"))
    assert found == {1: ["a"], 2: {"error": "deadline"}, 4: ["d"], 5: {"error": "deadline"}}
    assert time.monotonic() - began < 3
    assert fragment.follow([[(3, b"c")]], 0.4, hanging(b"hangs")) == {3: ["c"]}


def test_a_mount_whose_child_dies_says_so() -> None:
    found = fragment.follow([[(1, b"a"), (2, b"b")]], 5, lambda point: os._exit(1))
    assert found == {1: {"error": "io"}}
    assert fragment.follow([[(1, b"/no/such/point")]], 5) == {1: {"error": "missing"}}


@contextlib.contextmanager
def dead_server(point: Path) -> Iterator[None]:
    """A FUSE file system whose server never answers: whoever looks at it hangs in the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"dead", bytes(point), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "mount")
        try:
            yield
        finally:
            libc.umount2(bytes(point), 2)  # MNT_DETACH
    finally:
        os.close(fd)  # ends the connection: those who hang get an error


@pytest.mark.lab
def test_a_real_file_system_that_does_not_answer(tmp_path: Path) -> None:
    """Root, as the node program is on a node. Nothing of it is left afterwards."""
    points = [tmp_path / "dead one", tmp_path / "dead-two"]
    for point in points:
        point.mkdir()
    arguments = json.dumps({"pseudo": sorted(mounts.PSEUDO), "local": sorted(mounts.LOCAL), "seconds": 0.7})
    with contextlib.ExitStack() as stack:
        for point in points:
            stack.enter_context(dead_server(point))
        began = time.monotonic()
        (answer,) = asked(Ask("mounts", arguments, 10))
        took = time.monotonic() - began
    rows = {row["point"]: row for row in plain(mounts.parse((answer,)))}
    for point in points:
        assert rows[str(point)]["bytes"] == {"unknown": "DeadlinePassed", "detail": "deadline"}
        assert rows[str(point)]["type"] == "fuse"
    others = [row for row in rows.values() if row["type"] in mounts.LOCAL and row["bytes"] != {"absent": "Pseudo"}]
    others = [row for row in others if "reconcile-" not in row["point"]]  # disks of lab nodes, which come and go beside this test
    assert len(others) > 0
    assert not [row for row in others if "unknown" in row["bytes"]]
    assert rows["/"]["bytes"]["total"] == os.statvfs("/").f_blocks * os.statvfs("/").f_frsize
    assert 0.7 < took < 5  # both at once


def test_a_child_that_hangs_does_not_hold_our_pipes() -> None:
    """The answer of the whole ends with the fragment, not with what it left behind."""
    job = {"function": lambda: fragment.follow([[(1, b"hangs")]], 0.2, hanging(b"hangs")), "deadline": 10.0}
    began = time.monotonic()
    answer = work.run_all([job])[0]
    assert json.loads(answer["out"]) == {"1": {"error": "deadline"}}
    assert time.monotonic() - began < 3


def test_a_process_of_which_nobody_knows_whether_it_holds_a_gpu_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path, 10, "0::/system.slice/a.service\n", "a", "A", {"0": "/dev/null"})
    process(tmp_path, 11, "0::/user.slice/session-1.scope\n", "python3", "A", {"0": "/dev/null"})

    def refused(path: str) -> str:
        raise PermissionError(13, path)

    monkeypatch.setattr("os.readlink", refused)
    found = limits.look({"commands": [], "proc": str(tmp_path)})
    assert [(group["unit"], group["gpu"]) for group in found["groups"]] == [("a.service", None)]
    assert found["unread"] == [11]
