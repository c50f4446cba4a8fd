"""The kernel log as a node filters it: every source, the cursor, storms, and a log that is too large for the time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import kernel_events
from reconciler.facts.formats import plain
from reconciler.facts.live import About
from reconciler.model.fact import Ask, Raw
from reconciler.node.fragments import kernel_log
from tests.cases import DATA

EXPORT = DATA / "facts" / "kernel_log" / "journal.export"  # journalctl of systemd 252 over a journal made for it
# journalctl as its manual says: entries from that of the cursor on; where that is gone, from the next one that is there
JOURNALCTL = """#!{python} -IS
import os, re, sys
entries = re.split(rb"(?<=\\n\\n)(?=__CURSOR=)", open("{export}", "rb").read())
with open("{log}", "a") as f:
    f.write(" ".join(sys.argv[1:]) + "\\n")
wanted = [a[9:].encode() for a in sys.argv if a.startswith("--cursor=")]
if wanted:
    at = [e.split(b"\\n")[0][9:] for e in entries]
    entries = entries[at.index(wanted[0]) :] if wanted[0] in at else entries
sys.stdout.buffer.write(b"".join(entries))
"""
Node = Callable[..., dict[str, Any]]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """`node(cursor)`: what a node without any log answers; tests give it one."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(kernel_log, "ENVIRONMENT", {"PATH": f"{tmp_path}/bin"})
    monkeypatch.setattr(kernel_log, "KMSG", f"{tmp_path}/kmsg")
    monkeypatch.setattr(kernel_log, "FILES", (f"{tmp_path}/messages", f"{tmp_path}/kern.log"))

    def ask(cursor: str = "", **other: Any) -> dict[str, Any]:
        (part,) = kernel_events.parts(About(cursors={"kernel-log": cursor}))
        assert isinstance(part, Ask)
        return kernel_log.look({**json.loads(part.arguments), **other})

    return ask


def script(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "bin" / name).write_text(text)
    (tmp_path / "bin" / name).chmod(0o755)


def journal(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "export").write_bytes(data)
    text = JOURNALCTL.format(python=sys.executable, export=tmp_path / "export", log=tmp_path / "log")
    script(tmp_path, "journalctl", text)


def fact(answer: dict[str, Any]) -> Any:
    return plain(kernel_events.parse((Raw(json.dumps(answer).encode(), status=0),)))


def test_a_journal_gives_time_level_and_messages_of_several_lines(node: Node, tmp_path: Path) -> None:
    journal(tmp_path, EXPORT.read_bytes())
    answer = node()
    assert (answer["source"], answer["whole"], answer["continued"], answer["more"]) == ("journal", True, False, False)
    found = fact(answer)
    assert found["kinds"] == {"api-mismatch": 1, "driver-loaded": 1, "gpu-lost": 1, "xid": 1}
    xid = next(event for event in found["events"] if event["kind"] == "xid")
    assert (xid["time"], xid["boot_seconds"], xid["level"]) == ("2026-11-30T13:43:34.688231+00:00", 5.0, "err")
    assert (xid["bus"], xid["code"], xid["pid"]) == ("0000:9b:00", 79, 4242)
    mismatch = next(event for event in found["events"] if event["kind"] == "api-mismatch")
    assert mismatch["versions"] == ["570.86.15", "580.95.05"]
    assert (found["xids"], found["lost"]) == ({"0000:9b:00": {"79": 1}}, ["0000:9b:00.0"])


def test_the_second_look_reads_only_what_is_new(node: Node, tmp_path: Path) -> None:
    entries = EXPORT.read_bytes().split(b"__CURSOR=")[1:]
    journal(tmp_path, b"".join(b"__CURSOR=" + entry for entry in entries[:-2]))
    first = node()
    journal(tmp_path, EXPORT.read_bytes())
    second = node(first["cursor"])
    assert (second["continued"], second["whole"], second["again"]) == (True, True, "")
    assert [line.partition("] ")[2][:9] for line in second["lines"]] == ["NVRM: Xid", "NVRM: GPU"]
    third = node(second["cursor"])
    assert (third["lines"], third["cursor"], third["continued"]) == ([], second["cursor"], True)
    assert (tmp_path / "log").read_text().splitlines()[-1].endswith("--cursor=" + second["cursor"].split(" ", 2)[2])
    both = kernel_events.merge(fact(first), fact(second))
    once = fact(node())
    assert {key: both[key] for key in ("events", "kinds", "xids", "lost", "whole")} == {
        key: once[key] for key in ("events", "kinds", "xids", "lost", "whole")
    }


def test_a_cursor_that_the_journal_lost_means_the_whole_boot_again(node: Node, tmp_path: Path) -> None:
    journal(tmp_path, EXPORT.read_bytes())
    cursor = node()["cursor"]
    rest = b"__CURSOR=" + b"__CURSOR=".join(EXPORT.read_bytes().split(b"__CURSOR=")[4:])
    journal(tmp_path, rest.replace(b"s=d39", b"s=e39"))  # another file: its beginning is gone with the entry
    answer = node(cursor)
    assert (answer["continued"], answer["again"], answer["whole"]) == (False, "cursor-gone", False)
    assert len(answer["lines"]) == 3


def test_a_cursor_of_another_boot_or_of_nonsense_means_the_whole_boot_again(node: Node, tmp_path: Path) -> None:
    journal(tmp_path, EXPORT.read_bytes())
    boot = node()["boot"]
    other = "journal 11111111-08ce-4eee-9863-637b5a55c715 s=1"
    expected = {other: "other-boot", "x": "other-boot", f"kmsg {boot} 5": "other-source", f"journal {boot} x": "cursor-gone"}
    for cursor, why in expected.items():
        answer = node(cursor)
        assert (answer["again"], answer["continued"], len(answer["lines"])) == (why, False, 4), cursor


def test_no_log_at_all_says_what_was_tried(node: Node, tmp_path: Path) -> None:
    assert node()["tried"] == {"journal": "missing", "kmsg": "missing", "dmesg": "missing", "syslog": "missing"}
    assert fact(node())["unknown"] == "NoKernelLog"
    journal(tmp_path, b"")
    script(tmp_path, "dmesg", "#!/bin/sh\necho 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1\n")
    found = fact(node())
    assert (found["unknown"], found["detail"]) == (
        "PermissionDenied",
        "journal: no-entries; kmsg: missing; dmesg: denied; syslog: missing",
    )


def packets(records: list[bytes], monkeypatch: pytest.MonkeyPatch) -> int:
    """A pipe that gives one record a read, as /dev/kmsg does; its write end."""
    read, write = os.pipe2(os.O_DIRECT)
    os.set_blocking(write, False)
    for record in records:
        os.write(write, record)
    monkeypatch.setattr(kernel_log, "KMSG", f"/proc/self/fd/{read}")
    return write


def test_kmsg_record_by_record(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        b"6,0,0,-;Linux version 5.14\n",
        b"4,1,1500000,-;NVRM: GPU at PCI:0000:9b:00: GPU-00000000-0000-4000-8000-000000000001\n SUBSYSTEM=pci\n DEVICE=+pci:x\n",
        b"3,2,2500000,-;NVRM: API mismatch: the client 'x' (pid 1)\\x0aNVRM: has the version 570.86.15, but\\x0a has version 5\n",
    ]
    write = packets(records, monkeypatch)
    first = node()
    assert (first["source"], first["whole"], len(first["lines"])) == ("kmsg", True, 2)
    assert "SUBSYSTEM" not in "".join(first["lines"])
    assert fact(first)["events"][0]["boot_seconds"] == 1.5
    for record in (*records, b"4,3,3500000,-;NVRM: Xid (PCI:0000:9b:00): 43, pid=1, name=x, Ch 1\n"):
        os.write(write, record)
    second = node(first["cursor"])
    assert (second["continued"], second["whole"], len(second["lines"])) == (True, True, 1)
    os.write(write, b"4,9,9500000,-;NVRM: later\n")  # 4 to 8 were overwritten
    os.write(write, b"4,9,9500000,-;NVRM: later\n")
    third = node(second["cursor"])
    assert (third["continued"], third["again"], third["whole"]) == (False, "cursor-gone", False)


def test_this_machines_kmsg_is_what_dmesg_prints(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "KMSG", "/dev/kmsg")
    printed = subprocess.run(("dmesg", "-r"), check=True, capture_output=True, text=True, errors="replace").stdout.splitlines()
    last = [line.partition("] ")[2] for line in printed if "] " in line][-20:]
    answer = node(needles=[";"], most=100_000)
    said = [line.partition(";")[2] for line in answer["lines"]]
    assert answer["source"] == "kmsg"
    assert [message for message in last if message[:500] not in {line[:500] for line in said}] == []


def test_dmesg_where_there_is_no_kmsg(node: Node, tmp_path: Path) -> None:
    script(
        tmp_path, "dmesg", "#!/bin/sh\necho '<6>[    0.0] Linux version 5'; echo '<4>[    7.1] NVRM: Xid (PCI:0000:05:00): 31, x'\n"
    )
    answer = node()
    assert (answer["source"], answer["whole"], answer["cursor"]) == ("dmesg", True, "")
    assert fact(answer)["events"][0]["level"] == "warn"
    assert node(answer["cursor"])["continued"] is False


def test_a_syslog_file_from_its_last_boot_on(node: Node, tmp_path: Path) -> None:
    old = "Nov 29 10:00:00 n kernel: NVRM: Xid (PCI:0000:05:00): 48, pid=1, x\n"
    new = "Nov 30 10:00:00 n kernel: [    0.000000] Linux version 5.14\nNov 30 10:00:01 n app: Linux version 1\n"
    xid = "Nov 30 10:00:02 n kernel: NVRM: Xid (PCI:0000:05:00): 31, pid=1, x\n"
    path = tmp_path / "messages"
    path.write_text(old + new + xid + "Nov 30 10:00:03 n kernel: NVRM: cut")
    answer = node()
    assert (answer["source"], answer["whole"], answer["lines"]) == ("syslog", True, [xid.strip()])
    with path.open("a") as f:
        f.write(" off\n" + xid)
    second = node(answer["cursor"])
    assert (second["continued"], second["lines"][0][-7:], len(second["lines"])) == (True, "cut off", 2)
    path.rename(tmp_path / "messages.1")
    path.write_text(xid)
    third = node(second["cursor"])
    assert (third["again"], third["continued"], third["whole"], len(third["lines"])) == ("cursor-gone", False, False, 1)


def test_a_storm_hides_no_other_fault_and_is_counted(node: Node, tmp_path: Path) -> None:
    storm = "".join(f"Nov 30 10:00:00 n kernel: NVRM: Xid (PCI:0000:05:00): 13, pid={n}, x\n" for n in range(50_000))
    (tmp_path / "messages").write_text(f"{storm}Nov 30 10:00:00 n kernel: NVRM: Xid (PCI:0000:85:00): 79, pid=1, x\n{storm}")
    found = fact(node())
    assert found["xids"] == {"0000:05:00": {"13": 100_000}, "0000:85:00": {"79": 1}}
    assert (len(found["events"]), found["unlisted"]) == (401, 100_000 - 400)
    assert [event["pid"] for event in found["events"]][-1] == 49_999


def test_a_log_too_large_for_the_time_is_read_in_several_looks(node: Node, tmp_path: Path) -> None:
    line = "Nov 30 10:00:00 n kernel: audit: " + "x" * 200 + "\n"
    xid = "Nov 30 10:00:00 n kernel: NVRM: Xid (PCI:0000:05:00): 31, pid=1, x\n"
    (tmp_path / "messages").write_text((line * 5000 + xid) * 6)
    answer, found, looks = node(seconds=0), None, 1
    assert (answer["more"], len(answer["lines"]) < 6) == (True, True)
    while True:
        found = kernel_events.merge(found, fact(answer)) if found else fact(answer)
        if not answer["more"]:
            break
        answer, looks = node(answer["cursor"], seconds=0), looks + 1
    assert (found["xids"], looks > 2, found["more"]) == ({"0000:05:00": {"31": 6}}, True, False)


def test_a_journal_that_hangs_is_left_at_its_deadline(node: Node, tmp_path: Path) -> None:
    script(tmp_path, "journalctl", "#!/bin/sh\nexec /bin/sleep 60\n")
    began = time.monotonic()
    assert node(seconds=0.2)["tried"]["journal"] == "deadline"
    assert time.monotonic() - began < 5


def test_a_boot_that_begins_with_microcode_is_whole(node: Node, tmp_path: Path) -> None:
    first, second, *_ = EXPORT.read_bytes().split(b"__CURSOR=")[1:]
    head = b"__CURSOR=" + second.replace(b"Command line", b"microcode: updated early") + b"__CURSOR=" + first
    journal(tmp_path, head)
    assert node()["whole"] is True
    journal(tmp_path, b"__CURSOR=" + second)
    assert node()["whole"] is False
