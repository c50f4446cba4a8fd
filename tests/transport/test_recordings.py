"""Record a node, replay it: the same facts, nothing invented, nothing written, nothing told that should not be."""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import Garbled, NodeRefused, ReconcileError, Unreachable
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.model.fact import Probe, Read, Run, Stat
from reconciler.transport import recording
from reconciler.transport.local import LocalTransport
from reconciler.transport.probe import decode, encode
from reconciler.transport.record import RecordingTransport
from reconciler.transport.recording import Recording
from reconciler.transport.redact import Redactor
from reconciler.transport.replay import ReplayTransport

NODE = DesiredNode("gpu01", SshAccess("localhost"), ())
PROBES = (
    Probe("os", (Read("/etc/os-release"), Run(("uname", "-r")))),
    Probe("bytes", (Run(("printf", r"\377\376x")), Run(("no-such-command",)), Run(("sh", "-c", "echo no >&2; exit 3")))),
    Probe("file:/etc/passwd", (Stat("/etc/passwd"), Read("/etc/none"))),
)
WANTED = {probe.key: encode(probe) for probe in PROBES}


def made(**changes: Any) -> Recording:
    parts = [{"do": "read", "path": "/f", "limit": 1}]
    base = Recording("gpu01", "b", "h", "3.9", 0, 1.5, {"k": [{"out": "x"}]}, {"k": recording.digest(parts)})
    return dataclasses.replace(base, **changes)


def test_a_recorded_node_says_the_same_again(tmp_path: Path) -> None:
    real = RecordingTransport(LocalTransport(), clock=lambda: 123.0)
    channel = real.open(NODE, 20)
    answers = channel.request("probe", 20, facts=WANTED)["facts"]
    channel.close()
    real.close()
    assert [p.name for p in real.save(tmp_path)] == ["gpu01.json"]
    replayed = ReplayTransport(tmp_path).open(NODE, 20)
    again = replayed.request("probe", 20, facts=WANTED)["facts"]
    assert again == answers
    assert [decode(p, again[p.key]) for p in PROBES] == [decode(p, answers[p.key]) for p in PROBES]
    assert decode(PROBES[1], again["bytes"])[0].out == b"\xff\xfex"
    assert replayed.hello == replace(channel.hello, recorded=123.0)
    assert channel.hello.recorded is None
    assert recording.load(tmp_path, "gpu01").taken == 123.0


def test_saving_again_writes_the_same_bytes(tmp_path: Path) -> None:
    recording.save(tmp_path, made())
    first = (tmp_path / "gpu01.json").read_bytes()
    recording.save(tmp_path, recording.load(tmp_path, "gpu01"))
    assert (tmp_path / "gpu01.json").read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["gpu01.json"]
    assert json.loads(first)["format"] == "reconcile-recording/1"


def test_what_was_not_recorded_is_never_guessed(tmp_path: Path) -> None:
    recording.save(tmp_path, made())
    channel = ReplayTransport(tmp_path).open(NODE, 1)
    asked = {"k": [{"do": "read", "path": "/f", "limit": 1}], "other": [{"do": "run"}, {"do": "run"}]}
    facts = channel.request("probe", 1, facts=asked)["facts"]
    assert facts["k"] == [{"out": "x"}]
    assert [answer["error"] for answer in facts["other"]] == ["not-recorded"] * 2
    changed = channel.request("probe", 1, facts={"k": [{"do": "read", "path": "/g", "limit": 1}]})["facts"]["k"]
    assert [(a["error"], a["err"]) for a in changed] == [("not-recorded", "the probe is not the one that was recorded")]


@pytest.mark.parametrize("op", ["lease", "renew", "release", "begin", "wait", "settle", "anything"])
def test_nothing_can_be_written(tmp_path: Path, op: str) -> None:
    recording.save(tmp_path, made())
    with pytest.raises(NodeRefused, match="ReadOnly"):
        ReplayTransport(tmp_path).open(NODE, 1).request(op, 1)


def test_records(tmp_path: Path) -> None:
    recording.save(tmp_path, made())
    channel = ReplayTransport(tmp_path).open(NODE, 1)
    with pytest.raises(NodeRefused, match="NotRecorded"):
        channel.request("records", 1)
    assert "records" not in channel.request("probe", 1, facts={}, records=True)
    remembered: dict[str, Any] = {"steps": [], "inventory": {"File//f": {"spec": "s", "created": True}}, "lease": None}
    recording.save(tmp_path, made(records=remembered))
    channel = ReplayTransport(tmp_path).open(NODE, 1)
    assert channel.request("records", 1) == remembered
    assert channel.request("probe", 1, facts={}, records=True)["records"] == remembered
    channel.close()
    with pytest.raises(Unreachable, match="ConnectionLost"):
        channel.request("records", 1)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        (None, Unreachable, "NotRecorded"),
        ("{", Garbled, "NotJson"),
        ("[]", Garbled, "WrongShape"),
        ('{"format": "reconcile-recording/2"}', Garbled, "WrongShape"),
        ('{"format": "reconcile-recording/1"}', Garbled, "WrongShape"),
    ],
)
def test_files_that_are_no_recordings(tmp_path: Path, text: str | None, kind: type[ReconcileError], reason: str) -> None:
    if text is not None:
        (tmp_path / "gpu01.json").write_text(text)
    with pytest.raises(kind, match=reason):
        ReplayTransport(tmp_path).open(NODE, 1)


@pytest.mark.parametrize(
    "change", [{"facts": {"k": 1}}, {"asked": []}, {"uid": "0"}, {"records": 3}, {"node": "gpu02"}, {"extra": 1}, {"taken": None}]
)
def test_recordings_of_a_wrong_shape(tmp_path: Path, change: dict[str, Any]) -> None:
    path = recording.save(tmp_path, made())
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(Garbled, match="WrongShape"):
        ReplayTransport(tmp_path).open(NODE, 1)


@pytest.mark.parametrize("node", ["", ".", "..", "a/b", "../a", ".hidden"])
def test_a_name_is_never_a_path(tmp_path: Path, node: str) -> None:
    with pytest.raises(ValueError, match="no name for a file"):
        recording.load(tmp_path, node)


REDACTED = [
    ("link/ether 3c:ec:ef:12:34:56 brd ff:ff:ff:ff:ff:ff", "link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff"),
    ("inet 8.8.8.8/24 via 10.0.0.1, 192.168.1.1", "inet 198.18.0.1/24 via 10.0.0.1, 192.168.1.1"),
    ("inet6 2a00:1450:4001:82b::200e/64 fe80::1/64 ::1", "inet6 2001:db8::1/64 fe80::1/64 ::1"),
    ("Serial Number: S3X1NY0K", "Serial Number: SERIAL1"),
    ('<serial>1320220012345</serial> "serial": "AB12345"', '<serial>SERIAL1</serial> "serial": "SERIAL2"'),
    ("GPU-4f2a1b3c-0d1e-2f3a-4b5c-6d7e8f901234", "GPU-00000000-0000-0000-0000-000000000001"),
    (
        "host ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8mC0Vt1b2c3d4e5f6g7h8i9j0k me",
        "host ssh-ed25519 AAAAredacted1 me",
    ),
    ("<pdi>0xdac3c617e89e05f3</pdi>", "<pdi>0x0000000000000001</pdi>"),
    ("    GPU PDI                 : 0xdac3c617e89e05f3", "    GPU PDI                 : 0x0000000000000001"),
    ("256 SHA256:" + "a" * 43 + " root", "256 SHA256:redacted1 root"),
    ("Node GUID: 0x0002c903004b5a1e", "Node GUID: 0x0000000000000001"),
    ('{"node_guid":"a088:c203:0012:3456\\n"}', '{"node_guid":"0x0000000000000001\\n"}'),
    ('"gids/0":"fe80:0000:0000:0000:a088:c203:0012:3456\\n"', '"gids/0":"fe80:0000:0000:0000:0000:0000:0000:0001\\n"'),
    ('"gids/2":"0000:0000:0000:0000:0000:ffff:0a00:0001\\n"', '"gids/2":"0000:0000:0000:0000:0000:ffff:0a00:0001\\n"'),
    ("a -----BEGIN OPENSSH PRIVATE KEY-----\nx\ny\n-----END OPENSSH PRIVATE KEY----- b", "a -----REDACTED PRIVATE KEY 1----- b"),
]


@pytest.mark.parametrize(("before", "after"), REDACTED)
def test_redacted(before: str, after: str) -> None:
    assert Redactor().text(before) == after


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("libcudnn9-cuda-12\t9.5.1.17-1\n", "dpkg-query -W"),
        ("libcudnn9 9.5.1.17\nVersion: 8.9.2.26", "rpm -qa"),
        ("nvidia 8.9.2.26", "/opt/x/nvidia_cudnn-8.9.2.26.dist-info/METADATA"),
        ("libcudnn-9.5.1.17-1.x86_64 12:34:56 std::vector", "cat"),
        ("serial console on ttyS0; serial8250: ttyS1", "dmesg"),
        ('{"sha256": "' + "ab" * 32 + '"}', "/etc/machine-id"),
        ("10.1.2.3 172.16.0.9 192.168.0.1 169.254.1.1 127.0.0.1 fd00::1 fe80::abcd", "ip addr"),
    ],
)
def test_kept(text: str, source: str) -> None:
    assert Redactor().text(text, source) == text


MIRRORS = [
    (
        "deb http://deb.mirror.net/debian x main\nbaseurl=https://u:p@mirror.site.org:8443/el9/ http://deb.mirror.net",
        "deb http://host1.example/debian x main\nbaseurl=https://u:p@host2.example:8443/el9/ http://host1.example",
    ),
    ("baseurl=http://10.88.0.1:8000/rpms https://gpu01/x", "baseurl=http://10.88.0.1:8000/rpms https://gpu01/x"),
]


@pytest.mark.parametrize(("before", "after"), MIRRORS)
@pytest.mark.parametrize(
    "part",
    [{"do": "ask", "fragment": "tree"}, {"do": "read", "path": "/etc/yum.repos.d/a.repo"}, {"do": "run", "argv": ["dnf", "x"]}],
)
def test_mirrors_are_named_nowhere(before: str, after: str, part: dict[str, Any]) -> None:
    assert Redactor().answers([part], [{"out": before}]) == [{"out": after}]
    assert Redactor().answers([{"do": "read", "path": "/etc/os-release"}], [{"out": before}]) == [{"out": before}]


def test_by_source() -> None:
    redactor = Redactor()
    assert redactor.text("0123456789abcdef0123456789abcdef\n", "/etc/machine-id") == "0" * 31 + "1\n"
    assert redactor.text("ABC 123\n", "/sys/class/dmi/id/board_serial") == "SERIAL1\n"
    assert redactor.text("NVIDIA A100, 1320220012345", "nvidia-smi --query-gpu=name,serial") == "NVIDIA A100, 0000000000001"


def test_one_value_has_one_stand_in_on_all_nodes_also_in_bytes() -> None:
    redactor = Redactor()
    a, b = "3c:ec:ef:00:00:0a", "3c:ec:ef:00:00:0b"
    packed = base64.b64encode(b"\xff" + a.upper().encode()).decode()
    first = redactor.value({"out": f"{b} {a}", "err64": packed, "status": 0, "ms": 1.5}, "ip link")
    assert first["out"] == "02:00:00:00:00:01 02:00:00:00:00:02"
    assert base64.b64decode(first["err64"]) == b"\xff02:00:00:00:00:02"
    assert (first["status"], first["ms"]) == (0, 1.5)
    assert redactor.text(a) == "02:00:00:00:00:02"


def test_a_saved_recording_is_redacted(tmp_path: Path) -> None:
    real = RecordingTransport(LocalTransport())
    channel = real.open(NODE, 20)
    parts = [{"do": "run", "argv": ["echo", "link 3c:ec:ef:12:34:56"], "deadline": 5}]
    assert "3c:ec:ef" in channel.request("probe", 20, facts={"k": parts})["facts"]["k"][0]["out"]
    channel.close()
    real.close()
    (path,) = real.save(tmp_path)
    assert "3c:ec:ef" not in path.read_text()
    replayed = ReplayTransport(tmp_path).open(NODE, 1).request("probe", 1, facts={"k": parts})["facts"]["k"][0]
    assert replayed["out"] == "link 02:00:00:00:00:01\n"
