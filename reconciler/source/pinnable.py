"""What `reconcile pin` and `fetch` start from: what a folder of manifests declares, its locks right or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.model import lock as locks
from reconciler.model.desired import DesiredNode, Revision
from reconciler.model.lock import Lock
from reconciler.model.manifest import Cluster
from reconciler.model.problem import Problem
from reconciler.source.environments import MAX_LOCK, Declared, Locks
from reconciler.source.load import Documents, load
from reconciler.source.report import Report
from reconciler.source.resolve import Resolver
from reconciler.source.stacks import Stack, Stacks
from reconciler.source.system_locks import SystemLocks
from reconciler.source.tree import DirectoryTree, Recorder


@dataclass(frozen=True, slots=True)
class Pinnable:
    """`environments`: of all stacks, a lock that several name once for each; `indexes`: what `mirrors.pypi` says anywhere.

    With `problems` nothing else is of use. `lock_problems`: why locks of environments do not hold what is declared. `nodes`: of all
    clusters. `system`: the locks of OS packages.
    """

    root: Path
    environments: tuple[Declared, ...] = ()
    indexes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    lock_problems: tuple[Problem, ...] = ()
    stacks: tuple[Stack, ...] = ()
    clusters: tuple[str, ...] = ()
    nodes: Mapping[str, DesiredNode] = field(default_factory=dict)
    system: SystemLocks | None = None

    def lock(self, declared: Declared) -> Lock | None:
        """The lock as it is on disk; None where there is none, or it is not one."""
        content = DirectoryTree(self.root).read(declared.lock, MAX_LOCK)
        return locks.parse(content)[0] if isinstance(content, bytes) else None


def pinnable(path: str | Path) -> Pinnable:
    """Read the manifests of a folder on disk, whatever Git says. Never raises for what it reads: see `problems`."""
    report, tree, root = Report(), DirectoryTree(Path(path)), Path(path)
    documents = load(tree, report, str(path))
    stacks = Stacks(documents, report, {})
    found = tuple(e for stack in stacks for e in stack.environments.values())
    if report.problems:
        return Pinnable(root, problems=report.sorted_problems())
    whole, judged = Report(), Report()
    for declared in found:
        code = declared.lacks()
        if code:
            whole.say(declared.origin, code, found=declared.name)
    Locks(tree, judged).check(found)
    states, system = Resolver(Recorder(tree), documents, whole, Report()).resolve_with_locks(Revision(None))
    nodes = {name: node for state in states.values() for name, node in state.nodes.items()}
    problems = whole.sorted_problems()
    return Pinnable(
        root, found, _indexes(documents), problems, judged.sorted_problems(), tuple(stacks), tuple(states), nodes, system
    )


def _indexes(documents: Documents) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for declared in documents.clusters.values():
        assert isinstance(declared.manifest, Cluster)
        spec = declared.manifest.spec
        for block in (spec, *spec.profiles.values(), *spec.nodes.values(), *spec.overrides.values()):
            if block.mirrors and block.mirrors.pypi:
                found[block.mirrors.pypi] = None
    return tuple(found)
