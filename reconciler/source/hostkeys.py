"""Known host keys (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT): which lines are about a host."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hmac
from dataclasses import dataclass, field


@dataclass(slots=True)
class HostKeys:
    """The lines of one file. `unread` holds (line number, marker or "") of lines that are passed over.

    Hosts are matched as OpenSSH does: names and addresses as written, `[host]:port` for another port than 22, patterns
    with * and ?, `!` to except, hashed names. A key that a @revoked line names is known for no host.
    """

    unread: list[tuple[int, str]] = field(default_factory=list)
    _plain: dict[str, list[str]] = field(default_factory=dict)
    _patterns: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _hashed: list[tuple[bytes, bytes, str]] = field(default_factory=list)
    _revoked: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, content: bytes) -> HostKeys:
        """Read a known_hosts file; empty lines and comments say nothing."""
        keys = cls()
        for number, raw in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            line = raw.strip()
            if line and not line.startswith("#"):
                keys._add(number, line)
        return keys

    @property
    def empty(self) -> bool:
        """Whether there is no key at all."""
        return not (self._plain or self._patterns or self._hashed)

    def lines(self, host: str, port: int) -> tuple[str, ...]:
        """The lines about a host, as they stand in the file."""
        name = host.lower() if port == 22 else f"[{host.lower()}]:{port}"
        found = list(self._plain.get(name, ()))
        found += [line for patterns, line in self._patterns if _matches(name, patterns)]
        found += [line for salt, digest, line in self._hashed if hmac.digest(salt, name.encode(), "sha1") == digest]
        return tuple(line for line in found if line.split()[2] not in self._revoked)

    def _add(self, number: int, line: str) -> None:
        fields = line.split()
        if fields[0] == "@revoked" and len(fields) >= 4:
            self._revoked.add(fields[3])
        elif line.startswith("@"):
            self.unread.append((number, fields[0]))
        elif len(fields) < 3 or not _is_key(fields[2]):
            self.unread.append((number, ""))
        elif fields[0].startswith("|1|"):
            self._add_hashed(number, fields[0], line)
        elif any(c in fields[0] for c in "*?!"):
            self._patterns.append((tuple(fields[0].lower().split(",")), line))
        else:
            for name in fields[0].lower().split(","):
                self._plain.setdefault(name, []).append(line)

    def _add_hashed(self, number: int, name: str, line: str) -> None:
        try:
            salt, digest = (base64.b64decode(part, validate=True) for part in name.split("|")[2:])
        except ValueError:
            self.unread.append((number, ""))
        else:
            self._hashed.append((salt, digest, line))


def _is_key(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except binascii.Error:
        return False


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """A `!` that matches wins over all others. Brackets are text here, unlike in a shell."""
    literal = [(p.startswith("!"), p.removeprefix("!").replace("[", "[[]")) for p in patterns]
    if any(fnmatch.fnmatchcase(name, p) for negated, p in literal if negated):
        return False
    return any(fnmatch.fnmatchcase(name, p) for negated, p in literal if not negated)
