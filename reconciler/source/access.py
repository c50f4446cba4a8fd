"""How each node is reached: `ssh` settings, and the host keys that the repository knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.model.desired import Origin, SshAccess
from reconciler.model.problem import Path
from reconciler.source.hostkeys import HostKeys
from reconciler.source.members import Member, Site
from reconciler.source.merge import NOTHING, Leaves
from reconciler.source.report import Report
from reconciler.source.tree import Failure, Tree

_KNOWN_HOSTS = "known_hosts"
_MAX_KEYS = 16 << 20  # bytes of a known_hosts file
_NODES: Path = ("spec", "nodes")


@dataclass(slots=True)
class AccessReader:
    """Makes the access of each node of one site. What is not known of host keys is a warning: connecting refuses it."""

    tree: Tree
    report: Report
    site: Site
    _keys: dict[str, HostKeys] = field(default_factory=dict)
    _unknown: dict[tuple[Origin, str], list[str]] = field(default_factory=dict)

    def of(self, members: Sequence[Member]) -> dict[str, SshAccess]:
        """Access by node name."""
        found = {member.name: self._access(member) for member in members}
        for (at, file), hosts in self._unknown.items():
            self.report.warn(at, "no-host-key", found=file, host=hosts[0], others=len(hosts) - 1)
        return found

    def _access(self, member: Member) -> SshAccess:
        ssh = member.settings.get("ssh", NOTHING)
        file, port, jump = (
            str(_of(ssh, "knownHosts") or _KNOWN_HOSTS),
            int(_of(ssh, "port") or 22),
            _of(ssh, "proxyJump"),
        )
        node_at, keys = self.site.document.key((*_NODES, member.key)), self._known(file, ssh)
        lines = list(self._lines(keys, file, member.address, port, node_at))
        if jump is not None:
            said = ssh[("proxyJump",)]
            lines += self._lines(keys, file, *_jump_host(str(jump)), said.origin)
        user, identity = str(_of(ssh, "user") or "root"), _of(ssh, "identity")
        return SshAccess(member.address, port, user, str(jump) if jump else None, str(identity) if identity else None, tuple(lines))

    def _lines(self, keys: HostKeys, file: str, host: str, port: int, at: Origin) -> tuple[str, ...]:
        lines = keys.lines(host, port)
        if not lines and not keys.empty:
            hosts = self._unknown.setdefault((at, file), [])
            if host not in hosts[:1]:
                hosts.append(host)
        return lines

    def _known(self, file: str, ssh: Leaves) -> HostKeys:
        """The keys of a file; that it is missing, empty or odd is said once, where it is named first."""
        if file in self._keys:
            return self._keys[file]
        said = ssh.get(("knownHosts",))
        at = said.origin if said else self.site.document.key(_NODES)
        content = self.tree.read(file, _MAX_KEYS)
        if isinstance(content, Failure):
            code = "no-known-hosts" if content.code == "no-such-file" else "known-hosts-unreadable"
            self.report.warn(at, code, found=file, reason=content.code)
            content = b""
        elif HostKeys.of(content).empty:
            self.report.warn(at, "no-host-keys", found=file)
        keys = self._keys[file] = HostKeys.of(content)
        for line, marker in keys.unread:
            code = "host-key-marker" if marker else "bad-host-key"
            self.report.warn(Origin(file, line, 1), code, found=marker)
        return keys


def _of(ssh: Leaves, key: str) -> str | int | None:
    said = ssh.get((key,))
    return said.value if said and not isinstance(said.value, tuple) else None


def _jump_host(jump: str) -> tuple[str, int]:
    """Host and port of `[user@]host[:port]`; an IPv6 address stands in brackets."""
    host = jump.rpartition("@")[2]
    if host.startswith("["):
        address, _, port = host[1:].partition("]")
        return address, int(port.removeprefix(":") or 22)
    name, _, port = host.partition(":")
    return name, int(port or 22)
