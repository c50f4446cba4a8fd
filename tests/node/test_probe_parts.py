"""Parts of a probe, on this machine: what is there, what is not, and what may take too long."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.node import files, probe, work

Part = dict[str, Any]


def run(*argv: str, deadline: float = 10.0) -> dict[str, Any]:
    return probe.probe({"k": [{"do": "run", "argv": list(argv), "deadline": deadline}]})["k"][0]


def read(path: object, limit: int = 1 << 20) -> dict[str, Any]:
    return probe.probe({"k": [{"do": "read", "path": str(path), "limit": limit}]})["k"][0]


def look(path: object, owner: str = "root", group: str = "root") -> dict[str, Any]:
    answer = probe.probe({"k": [{"do": "stat", "path": str(path), "owner": owner, "group": group}]})["k"][0]
    return json.loads(answer["out"]) if "out" in answer else answer


def has_ended(pid: int) -> bool:
    """Whether the process ends within some seconds; it need not be our child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 5)[0])
    finally:
        os.close(fd)


def as_nobody(code: str) -> str:
    """What `code` prints as the user nobody, for whom root's files are closed. It finds `probe` imported."""
    become = "import os;from reconciler.node import probe;os.setgroups([]);os.setgid(65534);os.setuid(65534);"
    argv = (sys.executable, "-c", become + code)
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stdout


def test_a_command() -> None:
    answer = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (answer["out"], answer["err"], answer["status"]) == ("out\n", "err\n", 3)
    assert "error" not in answer


def test_a_command_has_no_input_and_a_fixed_environment() -> None:
    assert run("cat")["status"] == 0
    assert run("sh", "-c", "pwd; env | grep -c =; echo $LC_ALL")["out"].splitlines() == ["/", "4", "C.UTF-8"]


def test_a_command_without_privileges_runs_as_nobody_and_without_groups() -> None:
    part = {"do": "run", "argv": ["id"], "deadline": 10, "unprivileged": True}
    answer = probe.probe({"k": [part, {**part, "unprivileged": False}]})["k"]
    assert answer[0]["out"].startswith("uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)")
    assert answer[1]["out"].startswith("uid=0(root)")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A directory that only root may enter, with a file in it."""
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("inside\n")
    return tmp_path


@pytest.mark.parametrize(
    "writing", ["echo x > {0}/new", "mkdir {0}/new", "rm -f {0}/file; test ! -e {0}/file", "echo x > /etc/new"]
)
def test_in_the_place_of_root_one_reads_everything_and_writes_nothing(closed: Path, writing: str) -> None:
    argv = ["sh", "-c", f"cat {closed}/file && ({writing.format(closed)})"]
    (answer,) = work.run_apart([argv], [str(closed)], 10.0)
    assert answer["out"] == b"inside\n"
    assert answer["status"] > 0
    assert [path.name for path in closed.iterdir()] == ["file"]
    assert not Path("/etc/new").exists()


def test_without_setpriv_nobody_has_the_last_word(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`missing` would be understood as a program that is not there."""
    monkeypatch.setattr(work, "READER", ["no-such-setpriv"])
    (answer,) = work.run_apart([["cat", f"{closed}/file"]], [str(closed)], 10.0)
    assert (answer["error"], answer["status"]) == ("", 1)
    assert b"Permission denied" in answer["err"]


@pytest.mark.parametrize("argv", [["sleep", "60"], ["no-such-command"]])
def test_what_nobody_is_late_with_or_has_not_is_not_asked_twice(argv: list[str]) -> None:
    began = time.monotonic()
    (answer,) = probe.probe({"k": [{"do": "run", "argv": argv, "deadline": 2.0, "unprivileged": True}]})["k"]
    assert answer["error"] in ("deadline", "missing")
    assert time.monotonic() - began < 3.9


@pytest.mark.parametrize(
    ("argv", "error"),
    [(("no-such-command",), "missing"), (("/etc/passwd",), "denied"), (("/",), "denied"), (("echo", "a\0b"), "io")],
)
def test_a_command_that_cannot_start(argv: tuple[str, ...], error: str) -> None:
    answer = run(*argv)
    assert answer["error"] == error
    assert "status" not in answer


def test_a_command_that_cannot_start_stops_no_other() -> None:
    parts: list[Part] = [{"do": "run", "argv": argv, "deadline": 10} for argv in (["echo", "a"], ["no\0"], ["nope"], ["echo", "b"])]
    assert [a.get("out") or a["error"] for a in probe.probe({"k": parts})["k"]] == ["a\n", "io", "missing", "b\n"]


def test_the_deadline_ends_the_whole_process_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    began = time.monotonic()
    answer = run("sh", "-c", f"echo partly; sleep 61 & echo $! >{pids}; echo $$ >>{pids}; sleep 62", deadline=2)
    assert time.monotonic() - began < 20
    assert (answer["error"], answer["out"], answer["status"]) == ("deadline", "partly\n", -9)
    assert all(has_ended(int(pid)) for pid in pids.read_text().split())


def test_the_deadline_counts_when_the_pipes_are_closed_already() -> None:
    began = time.monotonic()
    assert run("sh", "-c", "exec >&- 2>&-; sleep 63", deadline=0.5)["error"] == "deadline"
    assert time.monotonic() - began < 20


def test_a_child_that_left_the_group_does_not_hold_the_answer_up() -> None:
    began = time.monotonic()
    answer = run("sh", "-c", "setsid sleep 20 & echo done", deadline=2)
    assert time.monotonic() - began < 15
    assert answer["out"] == "done\n"


def test_deadlines_are_each_commands_own() -> None:
    parts: list[Part] = [
        {"do": "run", "argv": ["sleep", "64"], "deadline": 0.3},
        {"do": "run", "argv": ["sh", "-c", "sleep 1; echo late"], "deadline": 10},
    ]
    first, second = probe.probe({"k": parts})["k"]
    assert (first["error"], second["out"], second["status"]) == ("deadline", "late\n", 0)


def test_output_over_the_limit_is_an_error_without_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "OUTPUT_LIMIT", 100_000)
    answer = run("cat", "/dev/zero")
    assert answer["error"] == "too-large"
    assert not {"out", "out64"} & set(answer)
    assert run("sh", "-c", "yes >&2")["error"] == "too-large"


def test_bytes_that_are_not_utf8_come_back_as_they_were() -> None:
    answer = run("printf", r"\377\000caf\351")
    assert base64.b64decode(answer["out64"]) == b"\xff\x00caf\xe9"
    assert run("printf", "é\\n")["out"] == "é\n"


def test_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("f")
    os.mkfifo(tmp_path / "fifo")
    assert read(tmp_path / "f", 100)["out"] == "x" * 100
    assert set(read(tmp_path / "empty")) == {"ms", "cpu"}
    assert read(tmp_path / "link")["out"] == "x" * 100
    assert read(tmp_path / "f", 99)["error"] == "too-large"
    assert "out" not in read(tmp_path / "f", 99)
    assert [read(path)["error"] for path in (tmp_path, tmp_path / "fifo", "/dev/zero")] == ["not-regular"] * 3
    assert [read(path)["error"] for path in (tmp_path / "none", tmp_path / "f" / "below")] == ["missing"] * 2
    assert read("a\0b")["error"] == "io"


def test_proc_and_sys_files_say_size_zero_and_are_read() -> None:
    assert read("/proc/version")["out"].startswith("Linux version")
    assert read("/proc/self/status", 10)["error"] == "too-large"
    assert read("/sys/kernel/mm/transparent_hugepage/enabled")["out"].strip()


def test_denied_is_not_missing(tmp_path: Path) -> None:
    code = (
        "parts=[dict(do='read',path='/etc/shadow',limit=9),dict(do='stat',path='/root/x',owner='root',group='root')];"
        "print([a['error'] for a in probe.probe({'k':parts})['k']])"
    )
    assert as_nobody(code).strip() == "['denied', 'denied']"


def test_stat_of_each_type(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    os.chown(tmp_path / "f", 1, 54321)
    (tmp_path / "f").chmod(0o4711)
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "socket"))
        assert look(tmp_path / "socket")["type"] == "special"
    found = look(tmp_path / "f", "root", "no-such-group")
    assert (found["type"], found["mode"], found["owner"], found["group"]) == ("file", 0o4711, "daemon", "54321")
    assert (found["size"], found["sha256"]) == (3, hashlib.sha256(b"abc").hexdigest())
    assert (found["owner_exists"], found["group_exists"]) == (True, False)
    assert (look(tmp_path)["type"], look(tmp_path / "fifo")["type"]) == ("directory", "special")
    link = look(tmp_path / "link")
    assert (link["type"], link["target"]) == ("link", "nowhere")


def test_stat_of_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for path, parent in (
        ("none", "directory"),
        ("a/b/c", "directory"),
        ("f/x", "not-a-directory"),
        ("dangling/x", "not-a-directory"),
    ):
        found = look(tmp_path / path)
        assert (found["type"], found["parent"]) == ("none", parent)


@pytest.mark.parametrize("path", ["", "relative", "a/b"])
def test_a_path_that_is_not_absolute_ends_in_an_error(path: str) -> None:
    assert look(path)["error"] == "io"


def test_a_large_file_is_not_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "HASH_LIMIT", 10)
    (tmp_path / "f").write_bytes(b"x" * 11)
    assert (look(tmp_path / "f")["sha256"], look(tmp_path / "f")["size"]) == ("", 11)
