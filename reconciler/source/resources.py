"""What a node shall have, as resources: packages, files, the package repositories that mirrors stand for, hosts, driver, units."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.desired import FileSpec, Resource, ResourceId
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.source.driver import Drivers
from reconciler.source.hosts import hosts_entries
from reconciler.source.load import is_manifest
from reconciler.source.merge import NOTHING, Layer, Leaves, Said
from reconciler.source.mirrors import nvidia_repository
from reconciler.source.packages import Packages
from reconciler.source.report import Report
from reconciler.source.stacks import Stack
from reconciler.source.system_locks import SystemLocks
from reconciler.source.tree import Failure, Tree
from reconciler.source.units import Units

MAX_CONTENT = 1 << 20  # bytes of a managed file
_NO_STACK = Stack("", (), {})


@dataclass(slots=True)
class Resources:
    """Makes the resources of nodes; those of nodes with the same settings are the same objects."""

    tree: Tree
    report: Report
    locks: SystemLocks
    _packages: Packages = field(init=False)
    _files: dict[tuple[int, int, str], tuple[Resource, ...]] = field(default_factory=dict)
    _judged: set[tuple[str, int, int, str]] = field(default_factory=set)
    _hosts: dict[tuple[int, int], tuple[Resource, ...]] = field(default_factory=dict)
    _units: dict[tuple[int, int], tuple[Resource, ...]] = field(default_factory=dict)
    _drivers: Drivers = field(init=False)

    def __post_init__(self) -> None:
        self._packages = Packages(self.report, self.locks, self._first)
        self._drivers = Drivers(self.report, self.locks, self._first)

    def of(self, settings: Layer, stack: Stack | None) -> tuple[Resource, ...]:
        """All but host name and environments: hosts, packages, repositories, files, driver, units; `settings` stay alive."""
        stack = stack or _NO_STACK
        packages, files = settings.get("packages", NOTHING), settings.get("files", NOTHING)
        mirrors = settings.get("mirrors", NOTHING)
        if (id(files), id(mirrors), stack.name) not in self._files:
            own = self._all_files(files)
            taken = {r.id.name for r in own}
            derived = [r for r in _repositories(mirrors, stack) if r.id.name not in taken]
            self._files[id(files), id(mirrors), stack.name] = (*derived, *own)
        made = self._packages.of(packages, stack) + self._files[id(files), id(mirrors), stack.name]
        made += self._drivers.of(settings, stack)
        return self._node_hosts(settings.get("hosts", NOTHING), files) + made + self._node_units(settings, files)

    def _node_hosts(self, hosts: Leaves, files: Leaves) -> tuple[Resource, ...]:
        label = (id(hosts), id(files))
        if label not in self._hosts:
            found = hosts_entries(hosts, files, self._first, self.report) if hosts else None
            self._hosts[label] = (found,) if found else ()
        return self._hosts[label]

    def _node_units(self, settings: Layer, files: Leaves) -> tuple[Resource, ...]:
        units = settings.get("units", NOTHING)
        if (id(units), id(files)) not in self._units:
            self._units[id(units), id(files)] = Units(self.report, self.content, self._first).of(units, files)
        return self._units[id(units), id(files)]

    def content(self, source: Said) -> bytes | None:
        """The bytes of the file that a `source` names, or None and a problem."""
        name = str(source.value)
        content = self.tree.read(name, MAX_CONTENT)
        if not isinstance(content, Failure):
            return content
        if self._first("source", source):
            choice = self.report.choice(name, self._names() if content.code == "no-such-file" else ())
            more = {"size": content.size, "limit": MAX_CONTENT}
            code, path = f"source-{content.code}", source.path
            self.report.say(source.origin, code, path, data={**choice, **more}, detail=content.detail)
        return None

    def _names(self) -> tuple[str, ...]:
        files = self.tree.files()
        return () if isinstance(files, Failure) else tuple(f for f in files if not is_manifest(f))

    def _first(self, what: str, said: Said, other: Said | None = None) -> bool:
        """Whether this is asked for the first time: a mistake in a profile is said once, not for each of its nodes."""
        label = (what, id(said), id(other), str(said.path))
        new = label not in self._judged
        self._judged.add(label)
        return new

    def _all_files(self, files: Leaves) -> tuple[Resource, ...]:
        grouped: dict[str, dict[str, Said]] = {}
        for path, said in files.items():
            grouped.setdefault(str(path[0]), {})[str(path[1]) if len(path) > 1 else ""] = said
        made = [self._file(path, words) for path, words in grouped.items()]
        self._check_nesting(grouped)
        return tuple(resource for resource in made if resource)

    def _file(self, path: str, words: dict[str, Said]) -> Resource | None:
        source = words.get("source")
        if source is None:
            said = next(iter(words.values()))
            if self._first("no-source", said):
                at = said.path[: said.path.index(path) + 1]
                self.report.say(said.document.key(at), "file-no-source", at)
            return None
        content = self.content(source)
        if content is None:
            return None
        owner, group, mode = (
            str(words[key].value) if key in words else default
            for key, default in (("owner", "root"), ("group", "root"), ("mode", "0644"))
        )
        restart = words["restart"].value if "restart" in words else None
        units = tuple(dict.fromkeys(restart)) if isinstance(restart, tuple) else ()
        origin = source.document.key(source.path[:-1])
        return Resource(ResourceId("File", path), FileSpec(path, content, owner, group, int(mode, 8), restart=units), origin)

    def _check_nesting(self, grouped: dict[str, dict[str, Said]]) -> None:
        """A file cannot be a folder of another one."""
        for path, words in grouped.items():
            parts = path.split("/")
            above = next((p for i in range(2, len(parts)) if (p := "/".join(parts[:i])) in grouped), None)
            said = next(iter(words.values()))
            if above and self._first("nesting", said):
                at = said.path[: said.path.index(path) + 1]
                self.report.say(said.document.key(at), "file-below-file", at, other=above)


def _repositories(mirrors: Leaves, stack: Stack) -> list[Resource]:
    """One file for each distribution of the stack (any: each that is known), since a node's own is not known here."""
    said = mirrors.get(("nvidia",))
    if said is None:
        return []
    at = said.document.key(said.path)
    found: list[Resource] = []
    for distribution in stack.distributions or DISTRIBUTIONS:
        manager, folder = DISTRIBUTIONS[distribution]
        spec = nvidia_repository(str(said.value), manager, folder)
        found.append(Resource(ResourceId("File", spec.path), spec, at, distribution=distribution, manager=manager))
    return found
