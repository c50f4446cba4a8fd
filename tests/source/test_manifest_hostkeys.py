"""Host keys: which lines are about a node, and what is said where none is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler.render.problems import problem_text
from reconciler.source import validate_path
from reconciler.source.hostkeys import HostKeys

KEY, OTHER = "QUFBQQ==", "QkJCQg=="
SITE = """apiVersion: reconcile/v1
kind: Cluster
metadata: {name: c}
spec:
  nodes:
    n[1-3]:
      address: 10.0.0.[1-3]
"""


@pytest.mark.parametrize(
    ("line", "host", "port", "known"),
    [
        ("n1,10.0.0.1", "10.0.0.1", 22, True),
        ("N1", "n1", 22, True),
        ("10.0.0.1", "10.0.0.10", 22, False),
        ("10.0.0.1", "10.0.0.1", 2200, False),
        ("[10.0.0.1]:2200", "10.0.0.1", 2200, True),
        ("10.0.0.*", "10.0.0.1", 22, True),
        ("10.0.0.*,!10.0.0.1", "10.0.0.1", 22, False),
        ("[10.0.0.?]:2200", "10.0.0.1", 2200, True),
        ("fe80::1", "FE80::1", 22, True),
    ],
)
def test_lines_are_matched_as_openssh_does(line: str, host: str, port: int, known: bool) -> None:
    text = f"{line} ssh-ed25519 {KEY} comment"
    assert HostKeys.of(text.encode()).lines(host, port) == ((text,) if known else ())


def test_hashed_names(tmp_path: Path) -> None:
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=False)
    assert made.returncode == 0
    key = (tmp_path / "k.pub").read_text().strip()
    (tmp_path / "hosts").write_text(f"10.0.0.1 {key}\n[10.0.0.2]:2200 {key}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(tmp_path / "hosts")], check=True, capture_output=True)
    keys = HostKeys.of((tmp_path / "hosts").read_bytes())
    assert len(keys.lines("10.0.0.1", 22)) == 1
    assert len(keys.lines("10.0.0.2", 2200)) == 1
    assert keys.lines("10.0.0.2", 22) == ()
    assert not keys.empty


def test_a_revoked_key_is_known_for_no_host() -> None:
    keys = HostKeys.of(f"n1 ssh-ed25519 {KEY}\nn1 ssh-ed25519 {OTHER}\n@revoked * ssh-ed25519 {KEY}\n".encode())
    assert keys.lines("n1", 22) == (f"n1 ssh-ed25519 {OTHER}",)


def test_odd_lines_are_told() -> None:
    lines = [
        "# comment",
        "",
        "n1",
        "n1 ssh-ed25519 not*base64",
        f"@cert-authority * ssh-ed25519 {KEY}",
        f"|1|a|b ssh-rsa {KEY}",
    ]
    keys = HostKeys.of("\n".join(lines).encode())
    assert keys.unread == [(3, ""), (4, ""), (5, "@cert-authority"), (6, "")]
    assert keys.empty


@pytest.mark.parametrize(
    ("known_hosts", "more", "warns"),
    [
        (None, "", ["c.yaml:5:3: there is no file 'known_hosts': every node will be refused, its host key is unknown"]),
        ("# none\n", "", ["c.yaml:5:3: 'known_hosts' holds no host key: every node will be refused"]),
        (
            f"10.0.0.1 ssh-ed25519 {KEY}\nodd\n@cert-authority * a {KEY}\n",
            "",
            [
                "c.yaml:6:5: 'known_hosts' has no host key for 10.0.0.2 (and 1 more): refused when it is connected to",
                "known_hosts:2:1: not a host key line of known_hosts (hosts, type, key): passed over",
                "known_hosts:3:1: '@cert-authority' lines are not supported: passed over",
            ],
        ),
        (
            f"10.0.0.* ssh-ed25519 {KEY}\n",
            "  ssh: {proxyJump: 'a@[fe80::1]:2200'}\n",
            ["c.yaml:8:20: 'known_hosts' has no host key for fe80::1: refused when it is connected to"],
        ),
        (f"10.0.0.* ssh-ed25519 {KEY}\n[b]:23 x {KEY}\n", "  ssh: {proxyJump: 'b:23'}\n", []),
        (
            f"10.0.0.* ssh-ed25519 {KEY}\n",
            "  ssh: {knownHosts: files}\n",
            ["c.yaml:8:21: 'files' cannot be read (not-regular): every node will be refused, its key is unknown"],
        ),
    ],
)
def test_what_is_said_of_a_site(tmp_path: Path, known_hosts: str | None, more: str, warns: list[str]) -> None:
    (tmp_path / "c.yaml").write_text(SITE + more)
    (tmp_path / "files").mkdir()
    if known_hosts is not None:
        (tmp_path / "known_hosts").write_text(known_hosts)
    loaded = validate_path(tmp_path)
    assert loaded.problems == ()
    assert [problem_text(w) for w in loaded.warnings] == warns
    assert loaded.desired is not None
