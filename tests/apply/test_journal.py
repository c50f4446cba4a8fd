"""The journal: append-only, whole after any crash, and refused where it is not."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply import journal
from reconciler.apply.journal import CRASH, Journal, read
from reconciler.errors import StateDamaged


def write(path: Path, count: int) -> None:
    opened = Journal(path)
    for number in range(count):
        opened.append("noted", number=number)
    opened.close()


def test_records_are_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, 2)
    write(path, 1)
    found = read(path)
    assert [(r["seq"], r["type"], r["number"]) for r in found] == [(1, "noted", 0), (2, "noted", 1), (3, "noted", 0)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text().splitlines()[0]) == {"format": "reconcile-journal", "version": 1}


def test_no_journal_has_no_records(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_line_that_was_cut_short_never_counted_and_is_written_over(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    write(path, 2)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    assert [r["seq"] for r in read(path)] == [1]
    write(path, 1)
    assert [r["number"] for r in read(path)] == [0, 0]
    assert path.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_header_that_was_cut_short(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    write(path, 0)
    path.write_bytes(path.read_bytes()[:-cut])
    write(path, 1)
    assert [r["number"] for r in read(path)] == [0]


HEAD = b'{"format":"reconcile-journal","version":1}\n'
ONE, TWO = b'{"seq":1,"type":"a"}\n', b'{"seq":2,"type":"a"}\n'
DAMAGED: list[tuple[bytes, int]] = [
    (HEAD + b"{\n" + TWO, 2),
    (HEAD + ONE + b"\x00\x00\x00\n", 3),
    (HEAD + ONE + b"\n" + TWO, 3),
    (HEAD + TWO, 2),
    (HEAD + ONE + ONE, 3),
    (HEAD + ONE + b'{"seq":3}\n', 3),
    (HEAD + b'{"type":"a"}\n', 2),
    (HEAD + b"[1]\n", 2),
    (HEAD + b"null\n" + TWO, 2),
    (HEAD + b"\xff\xfe\n", 2),
    (HEAD + b"[" * 100_000 + b"\n", 2),
    (ONE + TWO, 1),
    (b"hello\n", 1),
    (b'{"format":"other","version":1}\n', 1),
    (b'{"format":"reconcile-journal","version":"1"}\n', 1),
    (b'{"format":"reconcile-journal"}\n', 1),
]


@pytest.mark.parametrize(("data", "line"), DAMAGED)
def test_damage_before_the_end_is_refused_with_its_line_and_left_as_it_is(tmp_path: Path, data: bytes, line: int) -> None:
    path = tmp_path / "j"
    path.write_bytes(data)
    for use in (read, Journal):
        with pytest.raises(StateDamaged) as refused:
            use(path)
        assert (refused.value.reason, refused.value.data["line"]) == ("JournalDamaged", line)
    assert path.read_bytes() == data


def test_a_newer_versions_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b'{"format":"reconcile-journal","version":2}\n')
    with pytest.raises(StateDamaged) as refused:
        Journal(tmp_path / "j")
    assert (refused.value.reason, refused.value.data["version"], refused.value.data["supported"]) == ("NewerState", 2, 1)


def test_a_journal_that_cannot_be_read_or_opened(tmp_path: Path) -> None:
    with pytest.raises(StateDamaged, match="JournalUnreadable"):
        read(tmp_path)
    with pytest.raises(StateDamaged, match="JournalUnwritable"):
        Journal(tmp_path / "no such folder" / "j")


def test_appends_of_many_threads_are_whole_and_numbered(tmp_path: Path) -> None:
    opened = Journal(tmp_path / "j")
    threads = [
        threading.Thread(target=lambda n=n: [opened.append("t", thread=n, pad="x" * 500) for _ in range(20)]) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.close()
    found = read(tmp_path / "j")
    assert [r["seq"] for r in found] == list(range(1, 161))
    assert sorted(r["thread"] for r in found) == sorted(list(range(8)) * 20)


WRITER = "import sys; from pathlib import Path; from tests.apply.test_journal import {0}; {0}(Path(sys.argv[1]), 5)"


def in_a_process(function: str, path: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-c", WRITER.format(function), str(path)]
    return subprocess.run(
        argv, cwd=Path(__file__).parents[2], env={**os.environ, **environment}, stdout=subprocess.PIPE, check=False
    )


@pytest.mark.parametrize("after", [1, 3, 5])
def test_the_crash_harness_ends_the_process_after_exactly_so_many_records(tmp_path: Path, after: int) -> None:
    died = in_a_process("write", tmp_path / "j", **{CRASH: str(after)})
    assert died.returncode == -signal.SIGKILL
    assert len(read(tmp_path / "j")) == after


def until_full(path: Path, count: int) -> None:
    """Records until the file may not grow any more, then more of them."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    opened = Journal(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
    codes: list[Any] = []
    for number in range(count * 4):
        if number == count * 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            codes.append(opened.append("noted", number=number)["seq"])
        except StateDamaged as e:
            codes.append(e.reason)
    print(json.dumps(codes))


def test_a_full_disk_leaves_a_whole_journal_and_ends_all_writing(tmp_path: Path) -> None:
    done = in_a_process("until_full", tmp_path / "j")
    codes = json.loads(done.stdout)
    good = [c for c in codes if isinstance(c, int)]
    assert 1 <= len(good) < 10
    assert codes == [*good, *["JournalUnwritable"] * (len(codes) - len(good))]
    assert [r["seq"] for r in read(tmp_path / "j")] == good
    write(tmp_path / "j", 1)
    assert len(read(tmp_path / "j")) == len(good) + 1
    assert journal.VERSION == 1
