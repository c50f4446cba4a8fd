"""Which host keys are accepted: the lines of a `known_hosts` file, as OpenSSH reads them, and nothing else."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.errors import Unreachable

SSH_PORT = 22
CERTIFICATE_AUTHORITY = "@cert-authority"
REVOKED = "@revoked"


@dataclass(frozen=True, slots=True)
class HostKey:
    """One key as it travels: `type` is its name in the blob (`ssh-ed25519`), `blob` what base64 stands for in known_hosts."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:...` as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: `patterns` as written, `marker` empty, `@revoked` or `@cert-authority`."""

    marker: str
    patterns: tuple[str, ...]
    key: HostKey

    def names(self, name: str) -> bool:
        """Whether the line is about `name`. A pattern with `!` that fits excludes it, whatever the others say."""
        found = False
        for pattern in self.patterns:
            negated = pattern.startswith("!")
            if _fits(pattern[negated:], name):
                if negated:
                    return False
                found = True
        return found


def _fits(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        try:
            salt, digest = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
        except ValueError:
            return False
        return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
    # OpenSSH knows * and ? only: brackets stand for themselves, as in [host]:port
    return fnmatch.fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def parse(line: str) -> Entry | None:
    """None for what is no entry: a comment, an empty or a damaged line."""
    fields = line.split()
    marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
    if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", REVOKED, CERTIFICATE_AUTHORITY):
        return None
    try:
        blob = base64.b64decode(fields[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Entry(marker, tuple(fields[0].split(",")), HostKey(fields[1], blob))


def _names(host: str, port: int) -> tuple[str, ...]:
    """How a host may stand in the file, the nearest first. Like OpenSSH: at another port the plain name counts as well."""
    plain = host.lower()
    return (plain,) if port == SSH_PORT else (f"[{plain}]:{port}", plain)


class KnownHosts:
    """The accepted keys of one node and of its jump host."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._entries = [entry for line in lines if (entry := parse(line.strip()))]

    def _of(self, host: str, port: int, marker: str) -> list[HostKey]:
        for name in _names(host, port):
            found = [e.key for e in self._entries if e.marker == marker and e.names(name)]
            if found:
                return found
        return []

    def types(self, host: str, port: int) -> tuple[str, ...]:
        """The key types that are known for `host`, to be asked for first: another of its keys could not be verified."""
        return tuple(dict.fromkeys(key.type for key in self._of(host, port, "")))

    def check(self, host: str, port: int, offered: HostKey) -> None:
        """Raises Unreachable HostKeyUnknown or HostKeyChanged; `fingerprint` in its data is what the host offered.

        A revoked key is unknown with `revoked` true, whatever other line has it. Host certificates cannot be verified
        here: a host with a certificate authority only is unknown with `authority` true.
        """
        said = {"host": host, "port": port, "type": offered.type, "fingerprint": offered.fingerprint}
        if any(offered == key for name in _names(host, port) for key in self._revoked(name)):
            raise Unreachable("HostKeyUnknown", **said, revoked=True)
        known = self._of(host, port, "")
        if offered in known:
            return
        if known:
            raise Unreachable("HostKeyChanged", **said, known=[key.fingerprint for key in known])
        authority = bool(self._of(host, port, CERTIFICATE_AUTHORITY))
        raise Unreachable("HostKeyUnknown", **said, **({"authority": True} if authority else {}))

    def _revoked(self, name: str) -> list[HostKey]:
        return [e.key for e in self._entries if e.marker == REVOKED and e.names(name)]
