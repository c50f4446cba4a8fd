"""Python environments of a stack, and their locks: each lock has to hold what is declared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.model import lock as locks
from reconciler.model import system_lock
from reconciler.model.desired import Origin
from reconciler.model.lock import Lock, canonical
from reconciler.model.pins import meets
from reconciler.source.merge import NOTHING, Layer, Said
from reconciler.source.report import Report
from reconciler.source.tree import Failure, Tree

MAX_LOCK = 8 << 20  # bytes; an environment of 200 packages with all of their hashes has 0.5 MB


@dataclass(frozen=True, slots=True)
class Declared:
    """An environment as a stack declares it. `python` None: neither it nor its stack says one. `lock`: path in the repository."""

    stack: str
    name: str
    python: Said | None
    packages: dict[str, Said]
    lock: str
    said: Said

    @property
    def origin(self) -> Origin:
        """Where it stands: its key."""
        path = self.said.path
        return self.said.document.key(path[: path.index(self.name) + 1])

    @property
    def pins(self) -> dict[str, str]:
        """Name (with extras) -> pin, as text."""
        return {name: str(said.value) for name, said in self.packages.items()}

    def lacks(self) -> str:
        """The code of what the declaration itself lacks; empty: nothing."""
        if self.name.endswith(".d"):
            return "environment-name"
        if system_lock.PATH.fullmatch(self.lock):
            return "environment-lock"
        if not self.packages:
            return "environment-no-packages"
        return "" if self.python else "environment-no-python"


def environments(stack: str, layer: Layer) -> dict[str, Declared]:
    """All environments of a stack, by name."""
    fallback = layer.get("python", NOTHING).get(())
    blocks: dict[str, dict[tuple[str, ...], Said]] = {}
    for path, said in layer.get("environments", NOTHING).items():
        if path:
            blocks.setdefault(str(path[0]), {})[tuple(map(str, path[1:]))] = said
    found = {}
    for name, block in blocks.items():
        own = block.get(("lock",))
        packages = {path[1]: said for path, said in block.items() if len(path) == 2 and path[0] == "packages"}
        place = str(own.value) if own else f"locks/{stack}/{name}.txt"
        said = next(iter(block.values()))
        found[name] = Declared(stack, name, block.get(("python",), fallback), packages, place, said)
    return found


@dataclass(slots=True)
class Locks:
    """Reads locks once and reports what is wrong with them; a stack that extends another is judged with its own."""

    tree: Tree
    report: Report
    _read: dict[str, Lock | None] = field(default_factory=dict)
    _judged: dict[tuple[str, str], Lock | None] = field(default_factory=dict)

    def check(self, declared: Iterable[Declared]) -> None:
        """Judge all of these."""
        for environment in declared:
            self.of(environment)

    def of(self, declared: Declared) -> Lock | None:
        """The lock of an environment where it holds what is declared; None, and problems once, where it does not."""
        key = (declared.stack, declared.name)
        if key not in self._judged:
            self._judged[key] = self._judge(declared)
        return self._judged[key]

    def _judge(self, declared: Declared) -> Lock | None:
        if code := declared.lacks():
            self.report.say(declared.origin, code, found=declared.name)
            return None
        known = declared.lock in self._read
        if not known:
            self._read[declared.lock] = self._load(declared)
        found = self._read[declared.lock]
        if found is None or not self._fits(declared, found):
            return None
        return found

    def _load(self, declared: Declared) -> Lock | None:
        content = self.tree.read(declared.lock, MAX_LOCK)
        if isinstance(content, Failure):
            code = "lock-missing" if content.code == "no-such-file" else "lock-unreadable"
            data = {"lock": declared.lock, "found": declared.name, "reason": content.code}
            self.report.say(declared.origin, code, data=data, detail=content.detail)
            return None
        found, flaws = locks.parse(content)
        for flaw in flaws:
            self.report.say(Origin(declared.lock, flaw.line, flaw.column), flaw.code, data=flaw.data)
        return found

    def _fits(self, declared: Declared, found: Lock) -> bool:
        """Whether every declared pin is met; each one that is not is said at its own place."""
        right = True
        for name, said in declared.packages.items():
            pinned = found.pinned.get(canonical(name))
            if pinned is not None and meets(pinned.version, str(said.value)):
                continue
            code = "lock-differs" if pinned else "lock-lacks"
            version = pinned.version if pinned else None
            self.report.say(said.origin, code, lock=declared.lock, name=name, version=version, found=str(said.value))
            right = False
        python = declared.python
        if python is not None and str(python.value) != found.python:
            self.report.say(python.origin, "lock-python", lock=declared.lock, version=found.python, found=str(python.value))
            right = False
        return right
