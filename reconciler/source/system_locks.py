"""Locks of a stack's OS packages: read once, and judged when everything that is declared is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model import system_lock
from reconciler.model.desired import Origin
from reconciler.model.system_lock import SystemLock
from reconciler.model.version import is_prefix, is_version
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.source.merge import Said
from reconciler.source.report import Report
from reconciler.source.stacks import Stack
from reconciler.source.tree import Failure, Tree

MAX_LOCK = 1 << 20  # bytes; a line has about 50
_SHOWN = 4  # names in one sentence


def pins_of(stack: Stack, distribution: str) -> dict[str, Said]:
    """Every package of which the stack itself says a version there, with the pin; those of its driver are the GPU nodes' to say."""
    found = {name: said[distribution] for name, said in stack.packages.items() if distribution in said}
    return {name: said for name, said in found.items() if is_version(str(said.value))}


@dataclass(slots=True)
class SystemLocks:
    """Of all stacks. What is wrong with a lock is said once; one that is not right is as if it were not there."""

    tree: Tree
    report: Report
    _locks: dict[tuple[str, str], SystemLock | None] = field(default_factory=dict)
    _prefixes: dict[str, dict[str, list[Said]]] = field(default_factory=dict)

    def read(self, stacks: Iterable[Stack], *, whole: bool) -> None:
        """Read every system lock of these stacks. `whole`: all of the tree counts, so that a wrong name is not passed over."""
        known = {stack.name: stack for stack in stacks}
        files = self.tree.files() if whole else [system_lock.path_of(name, d) for name in known for d in DISTRIBUTIONS]
        for path in () if isinstance(files, Failure) else files:
            found = system_lock.PATH.fullmatch(path)
            if found and found[1] in known:
                content = self.tree.read(path, MAX_LOCK)
                if whole or content != Failure("no-such-file"):
                    self._locks[found[1], found[2]] = self._load(path, content, known[found[1]], found[2])

    def _load(self, path: str, content: bytes | Failure, stack: Stack, distribution: str) -> SystemLock | None:
        if isinstance(content, Failure):
            self.report.say(Origin(path, 0, 0), "lock-unreadable", lock=path, reason=content.code, detail=content.detail)
            return None
        if distribution not in (allowed := stack.distributions or tuple(DISTRIBUTIONS)):
            self.report.say(Origin(path, 0, 0), "lock-not-for", data=self.report.choice(distribution, allowed), stack=stack.name)
            return None
        found, flaws = system_lock.parse(content)
        for flaw in flaws:
            self.report.say(Origin(path, flaw.line, flaw.column), flaw.code, data=flaw.data)
        if found and found.distribution != distribution:
            self.report.say(Origin(path, 1, 1), "lock-other", found=distribution, version=found.distribution)
            return None
        return found

    def of(self, stack: str, distribution: str) -> SystemLock | None:
        """One lock, where there is one and it can be read."""
        return self._locks.get((stack, distribution))

    def having(self, stack: str, name: str) -> tuple[str, ...]:
        """The distributions whose lock has a package."""
        return tuple(d for (s, d), lock in sorted(self._locks.items()) if s == stack and lock and name in lock.packages)

    def version(self, stack: str, distribution: str, name: str, pin: str) -> str | None:
        """The whole version that a lock has of a package, where it meets the pin."""
        lock = self.of(stack, distribution)
        return lock.version(name, pin) if lock else None

    def declare(self, stack: str, name: str, said: Said) -> None:
        """A cluster of the stack says a prefix of a package, or has GPUs for its driver: a lock has to say which version."""
        known = self._prefixes.setdefault(stack, {}).setdefault(name, [])
        if said not in known:
            known.append(said)

    def places(self, stack: str) -> set[str]:
        """The distributions that have a lock, right or not."""
        return {d for s, d in self._locks if s == stack}

    def judge(self, stacks: Iterable[Stack], *, complete: bool) -> None:
        """Say what the locks lack, have in another version, or have too much.

        `complete`: every declaration was read; else it is not known what nobody declares.
        """
        for stack in stacks:
            prefixes = self._prefixes.get(stack.name, {})
            for distribution in sorted({*stack.distributions, *self.places(stack.name)}):
                _Judge(self, stack, distribution, prefixes).judge(complete=complete)
            if len(stack.distributions) != 1:
                self._say_unlocked(stack.name)
        self._say_unlocked("")  # of nodes without a stack, which no lock is for

    def _say_unlocked(self, stack: str) -> None:
        """Of a stack for several distributions it is not known here which nodes have which: one lock is enough."""
        for name, pins in self._prefixes.get(stack, {}).items():
            for said in (s for s in pins if is_prefix(str(s.value))) if not self.having(stack, name) else ():
                self.report.warn(said.document.key(said.path), "prefix-not-pinned", found=str(said.value), name=name)


@dataclass(slots=True)
class _Judge:
    """One lock against what is declared for it. `sure`: every node of the stack has this distribution."""

    locks: SystemLocks
    stack: Stack
    distribution: str
    prefixes: Mapping[str, list[Said]]

    @property
    def sure(self) -> bool:
        return self.stack.distributions == (self.distribution,)

    def judge(self, *, complete: bool) -> None:
        lock = self.locks.of(self.stack.name, self.distribution)
        if lock is None:
            if self.distribution not in self.locks.places(self.stack.name):
                self._say_not_pinned()
            return
        for name, said in self._required():
            self._require(lock, name, said)
        if not self.sure:
            self._say_met_by_none(lock)
        known = {*pins_of(self.stack, self.distribution), *self.prefixes}
        for name, locked in lock.packages.items() if complete else ():
            if name not in known:
                at = Origin(self._path, locked.line, 1)
                self.locks.report.say(at, "lock-extra", found=name, stack=self.stack.name, distribution=self.distribution)

    @property
    def _path(self) -> str:
        return system_lock.path_of(self.stack.name, self.distribution)

    def _required(self) -> Iterator[tuple[str, Said]]:
        yield from pins_of(self.stack, self.distribution).items()
        if self.sure:
            yield from ((name, said) for name, pins in self.prefixes.items() for said in pins)

    def _require(self, lock: SystemLock, name: str, said: Said) -> None:
        locked = lock.packages.get(name)
        if locked is None or not locked.version.meets(str(said.value)):
            code, version = ("lock-differs", str(locked.version)) if locked else ("lock-lacks", None)
            self.locks.report.say(said.origin, code, lock=self._path, name=name, version=version, found=str(said.value))

    def _say_met_by_none(self, lock: SystemLock) -> None:
        """A locked version that no prefix fits cannot be anybody's."""
        own = pins_of(self.stack, self.distribution)
        for name, pins in self.prefixes.items():
            if name in lock.packages and name not in own and not any(lock.version(name, str(s.value)) for s in pins):
                self._require(lock, name, pins[0])

    def _say_not_pinned(self) -> None:
        wanted = dict(self._required())
        if wanted:
            said = next(iter(wanted.values()))
            names, at = tuple(sorted(wanted)), said.document.key(said.path)
            self.locks.report.warn(at, "not-pinned", lock=self._path, names=names[:_SHOWN], others=max(0, len(names) - _SHOWN))
