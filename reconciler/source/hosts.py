"""The names that every node of a cluster resolves by /etc/hosts: those of its nodes, and what `hosts` adds."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.model.desired import HostsSpec, Resource, ResourceId
from reconciler.source.merge import Leaves, Said
from reconciler.source.report import Report

PATH = "/etc/hosts"


def hosts_entries(hosts: Leaves, files: Leaves, first: Callable[[str, Said], bool], report: Report) -> Resource | None:
    """One resource for all names. None where `files` declares the whole file: what is written wins over what is derived.

    `first`: whether something is said of a place for the first time.
    """
    written = [said for said in hosts.values() if said.path[1:2] != ("nodes",) or "hosts" in said.path]
    file = next((said for path, said in files.items() if path[0] == PATH), None)
    if file is not None:
        for said in written:
            if first("hosts-and-file", said):
                report.say(said.document.key(said.path), "hosts-and-file", said.path)
        return None
    names: dict[str, str] = {}
    for (name, *_), said in hosts.items():
        if name != "" and said.value:
            names[str(name).lower()] = str(said.value)
    if not names:
        return None
    at = written[0] if written else next(iter(hosts.values()))
    # a derived entry has no key of its own
    origin = at.document.key(at.path) if written else at.document.key(at.path[:2])
    lines = "".join(f"{address} {name}\n" for name, address in names.items())
    return Resource(ResourceId("HostsEntries", PATH), HostsSpec(lines), origin)
