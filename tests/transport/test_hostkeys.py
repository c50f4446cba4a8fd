"""Lines of known_hosts, judged as OpenSSH judges them."""

from __future__ import annotations

import base64
import hmac

import pytest

from reconciler.errors import Unreachable
from reconciler.transport.hostkeys import HostKey, KnownHosts, parse

ONE, TWO = HostKey("ssh-ed25519", b"one"), HostKey("ssh-ed25519", b"two")
K1, K2 = (f"ssh-ed25519 {base64.b64encode(key.blob).decode()}" for key in (ONE, TWO))


def hashed(name: str) -> str:
    """As `ssh-keygen -H` writes a name: a salt, and the HMAC-SHA1 of the name under it."""
    salt = bytes(range(20))
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def verdict(lines: list[str], host: str = "gpu01", port: int = 22, key: HostKey = ONE) -> str:
    try:
        KnownHosts(lines).check(host, port, key)
    except Unreachable as e:
        extra = [name for name in ("revoked", "authority") if e.data.get(name)]
        return " ".join([e.reason, *extra])
    return "accepted"


@pytest.mark.parametrize(
    ("lines", "host", "port", "expected"),
    [
        ([f"gpu01 {K1}"], "gpu01", 22, "accepted"),
        ([f"gpu01 {K1} a comment with words"], "gpu01", 22, "accepted"),
        ([f"gpu01\t{K1}"], "gpu01", 22, "accepted"),
        ([f"GPU01 {K1}"], "gpu01", 22, "accepted"),
        ([f"gpu01 {K1}"], "GPU01", 22, "accepted"),
        ([f"10.0.0.1,gpu01 {K1}"], "gpu01", 22, "accepted"),
        ([f"gpu02 {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([], "gpu01", 22, "HostKeyUnknown"),
        ([f"gpu01 {K2}"], "gpu01", 22, "HostKeyChanged"),
        ([f"gpu01 {K2}", f"gpu01 {K1}"], "gpu01", 22, "accepted"),
        ([f"[gpu01]:2222 {K1}"], "gpu01", 2222, "accepted"),
        ([f"[gpu01]:2222 {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([f"[gpu01]:2222 {K1}"], "gpu01", 2223, "HostKeyUnknown"),
        ([f"gpu01 {K1}"], "gpu01", 2222, "accepted"),
        ([f"[gpu01]:2222 {K2}", f"gpu01 {K1}"], "gpu01", 2222, "HostKeyChanged"),
        ([f"[2001:db8::1]:2222 {K1}"], "2001:db8::1", 2222, "accepted"),
        ([f"2001:db8::1 {K1}"], "2001:db8::1", 22, "accepted"),
        ([f"*.example.net {K1}"], "gpu01.example.net", 22, "accepted"),
        ([f"gpu0? {K1}"], "gpu01", 22, "accepted"),
        ([f"gpu0[12] {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([f"*,!gpu01 {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([f"!gpu01,* {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([f"*,!gpu01 {K1}"], "gpu02", 22, "accepted"),
        ([f"gpu01 {K1}", f"@revoked * {K1}"], "gpu01", 22, "HostKeyUnknown revoked"),
        ([f"gpu01 {K1}", f"@revoked gpu01 {K2}"], "gpu01", 22, "accepted"),
        ([f"[gpu01]:2222 {K1}", f"@revoked gpu01 {K1}"], "gpu01", 2222, "HostKeyUnknown revoked"),
        ([f"@cert-authority * {K1}"], "gpu01", 22, "HostKeyUnknown authority"),
        ([f"@cert-authority * {K2}", f"gpu01 {K1}"], "gpu01", 22, "accepted"),
        ([f"@unheard-of * {K1}"], "gpu01", 22, "HostKeyUnknown"),
        ([f"# gpu01 {K1}", "", "gpu01", "gpu01 ssh-ed25519 %%%"], "gpu01", 22, "HostKeyUnknown"),
        ([f"{hashed('gpu01')} {K1}"], "gpu01", 22, "accepted"),
        ([f"{hashed('gpu01')} {K2}"], "gpu01", 22, "HostKeyChanged"),
        ([f"{hashed('gpu01')} {K1}"], "gpu02", 22, "HostKeyUnknown"),
        ([f"{hashed('[gpu01]:2222')} {K1}"], "gpu01", 2222, "accepted"),
        ([f"|1|%|% {K1}", f"|1|QQ== {K1}"], "gpu01", 22, "HostKeyUnknown"),
    ],
)
def test_lines(lines: list[str], host: str, port: int, expected: str) -> None:
    assert verdict(lines, host, port) == expected


def test_what_a_refusal_carries() -> None:
    with pytest.raises(Unreachable) as caught:
        KnownHosts([f"gpu01 {K2}"]).check("gpu01", 22, ONE)
    assert caught.value.data == {
        "host": "gpu01",
        "port": 22,
        "type": "ssh-ed25519",
        "fingerprint": ONE.fingerprint,
        "known": [TWO.fingerprint],
    }


def test_types_that_are_known_come_once_and_in_order() -> None:
    lines = [f"gpu01 {K1}", "gpu01 ssh-rsa AAAA", f"gpu01 {K2}", "gpu02 ecdsa-sha2-nistp256 AAAA", "@revoked gpu01 ssh-dss AAAA"]
    assert KnownHosts(lines).types("gpu01", 22) == ("ssh-ed25519", "ssh-rsa")


def test_a_line_that_is_none() -> None:
    assert parse("") is None
    assert parse("@revoked gpu01 ssh-rsa") is None
