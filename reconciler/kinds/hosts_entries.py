"""HostsEntries: one marked block of /etc/hosts with the names of the cluster; every other line stays as it is."""

from __future__ import annotations

import base64
import difflib
import hashlib
import ipaddress

from reconciler.facts import hosts_file as fact
from reconciler.facts.hosts_file import HostsFile
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.model.desired import HostsSpec, PackageManager, Spec
from reconciler.model.fact import Absent, Probe, Unknown, Value
from reconciler.model.observed import Observation
from reconciler.model.plan import Action, FieldChange

_EMPTY = HostsFile(b"", None, b"")
_TOLD = 4  # lines that contradict ours and are named


def _digest(block: bytes) -> str:
    return "sha256:" + hashlib.sha256(block).hexdigest()[:16]


class HostsEntries:
    """One a node, named by its file."""

    name = "HostsEntries"

    def rank(self, spec: Spec) -> int:
        return 5  # before package repositories, which may be named here

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        return (fact.PROBE,)

    def observe(self, spec: Spec, context: Context) -> Observation:
        found = fact.read(context.facts)
        if not isinstance(found, Value):
            return found
        if found.value is None:
            return Absent("NoSuchFile")
        if found.value.block is None:
            return Absent("NoBlock")
        return Value({"content": _digest(found.value.block), "lines": len(found.value.lines())})

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, HostsSpec)
        found = fact.read(context.facts)
        if isinstance(found, Unknown):
            return held(found.why, detail=found.detail)
        if isinstance(found, Absent):
            return held("NotReadable", detail=found.reason)
        seen = self.observe(spec, context)
        observed = dict(seen.value) if isinstance(seen, Value) else None
        before = observed or {}
        file = found.value or _EMPTY
        pairs = (line.split(" ", 1) for line in spec.lines.splitlines())
        declared = {name: address for address, name in pairs}
        if against := _contradictions(file, declared):
            names = sorted({name for _, name, _ in against[:_TOLD]})
            lines = [f"line {number}: {address} {name}" for number, name, address in against[:_TOLD]]
            wanted = [f"{declared[name]} {name}" for name in names]
            return held("HostsContradicted", observed, lines=lines, declared=wanted, number=len(against))
        block = fact.block_of(spec.lines)
        if file.block == block:
            return Verdict(Action.NONE, observed=observed)
        fields = (
            FieldChange("content", before.get("content"), _digest(block)),
            FieldChange("lines", before.get("lines"), len(declared)),
        )
        changed = tuple(field for field in fields if field.before != field.after)
        diff = difflib.unified_diff(file.lines(), spec.lines.splitlines(), "on the node", "in Git", lineterm="")
        return Verdict(Action.UPDATE if observed else Action.CREATE, changed, observed=observed, diff=tuple(diff))

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        return ()

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        drafts = []
        for resource, _ in todo:
            found = fact.read(context.facts)
            assert isinstance(resource.spec, HostsSpec)
            assert isinstance(found, Value)
            file = found.value or _EMPTY
            exchange = {
                "path": fact.PATH,
                "content": base64.b64encode(file.with_block(resource.spec.lines)).decode(),
                # what was read, and nothing else, is what this replaces: a line that somebody adds meanwhile is not lost
                "expected": hashlib.sha256(file.content).hexdigest() if found.value else "",
            }
            drafts.append(Draft("write-hosts", (resource.id,), {"exchange": exchange}))
        return tuple(drafts)


def _contradictions(file: HostsFile, declared: dict[str, str]) -> list[tuple[int, str, str]]:
    """Lines outside our block that give a declared name another address: line number, name, address there.

    Another address of the other family (IPv4, IPv6) is only one more, unless it is this machine's loopback.
    """
    found = []
    for number, address, names in file.others():
        there = ipaddress.ip_address(address)
        for name in dict.fromkeys(name.lower() for name in names):
            if name in declared:
                ours = ipaddress.ip_address(declared[name])
                if there != ours and (there.version == ours.version or there.is_loopback):
                    found.append((number, name, address))
    return found
