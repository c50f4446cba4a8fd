"""`reconcile pin` and `reconcile fetch`: locks, and the files that they name. Nodes are only looked at; a person commits."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from reconciler import config
from reconciler.commands import common, pin_system
from reconciler.errors import Usage
from reconciler.model.lock import Lock
from reconciler.model.words import nearest
from reconciler.pinning import resolve
from reconciler.pinning.fetch import Fetch
from reconciler.pinning.tools import Origins, configured
from reconciler.pinning.wheelhouse import Wheelhouse, write_text
from reconciler.render import locks as render
from reconciler.render.problems import problem_text
from reconciler.render.style import style_for
from reconciler.render.text import count
from reconciler.source.environments import Declared
from reconciler.source.pinnable import Pinnable, pinnable
from reconciler.source.stacks import Stack

chosen = common.options(
    click.argument("path", default=".", metavar="[PATH]"),
    click.option("--stack", metavar="NAME", help="Only what this Versions declares."),
    click.option("--environment", metavar="NAME", help="Only environments of this name."),
)


@click.command()
@chosen
@click.option("--only", type=click.Choice(["python", "system"]), help="Only Python environments, or only OS packages.")
@common.on
@click.option("--upgrade", is_flag=True, help="The newest of everything, whatever the lock has now.")
@click.option("--check", is_flag=True, help="Write nothing. Exit 2 when a lock would be another.")
@common.as_json
def pin(
    path: str,
    stack: str | None,
    environment: str | None,
    only: str | None,
    on: tuple[str, ...],
    upgrade: bool,
    check: bool,
    as_json: bool,
) -> int:
    """Choose every version of what the stacks below PATH declare, and write the locks.

    Python packages: locks/STACK/ENVIRONMENT.txt, from the index. OS packages: locks/STACK/system-DISTRIBUTION.txt, from what the
    nodes' repositories offer; nothing is changed on a node. What a lock has stays as long as it is what is declared. The files as
    they are on disk count; commit the locks.
    """
    if environment is not None and (only == "system" or on):
        raise Usage("OptionsApart", option="--environment", other="--only system" if only == "system" else "--on")
    found, told = _manifests(path), _Told(as_json)
    environments = _wanted(found, stack, environment, also_system=environment is None and only is None) if only != "system" else []
    if only != "python" and environment is None:
        stacks = _stacks(found, stack)
        result = pin_system.resolved(found, stacks, on, upgrade=upgrade, as_json=as_json)
        if code := pin_system.refused(result, as_json=as_json):
            return code
        for made in result.locks:
            told.say(pin_system.written(found.root, made, check=check))
    origins = _origins(found) if environments else Origins()
    for declared in environments:
        before = found.lock(declared)
        after = resolve.resolve(declared, before, origins, upgrade=upgrade)
        told.say(_written(found, declared, before, after, check=check))
    if as_json:
        common.print_json({"locks": told.locks})
    return 2 if check and any(lock["changed"] for lock in told.locks) else 0


@dataclass
class _Told:
    """What is said of each lock: to a person at once, to a program together at the end."""

    as_json: bool
    locks: list[dict[str, Any]] = field(default_factory=list)

    def say(self, lock: dict[str, Any]) -> None:
        self.locks.append(lock)
        if not self.as_json:
            click.echo("\n".join(render.pinned(lock, style_for(sys.stdout))))


@click.command()
@chosen
@click.option("--to", metavar="DIR", help="The wheelhouse; default: wheelhouse/ in the state directory.")
@common.state_dir
@common.as_json
def fetch(path: str, stack: str | None, environment: str | None, to: str | None, state_dir: str | None, as_json: bool) -> int:
    """Download every file that the locks below PATH name, with its hash checked, and build what has no wheel.

    A wheel that had to be built is built once: its hash is written into the lock. Commit that too.
    """
    found = _manifests(path)
    if found.lock_problems:
        for problem in found.lock_problems:
            click.echo(problem_text(problem), err=True)
        raise Usage("LocksDiffer", path=path, problems=count(len(found.lock_problems), "problem"))
    house = Wheelhouse.open(Path(to).absolute() if to else config.load(state_dir).state_dir / "wheelhouse")
    origins, told = _origins(found), []
    for declared in _wanted(found, stack, environment):
        lock = found.lock(declared)
        assert lock is not None
        done = Fetch(f"{declared.stack}/{declared.name}", house, origins).run(lock)
        if done.lock != lock:
            write_text(found.root / declared.lock, done.lock.text())
        told.append({"lock": declared.lock, "files": len(lock.pinned), "downloaded": done.downloaded, "built": done.built})
        if not as_json:
            click.echo(render.fetched(told[-1], str(house.root)))
    if as_json:
        common.print_json({"wheelhouse": str(house.root), "locks": told})
    return 0


def _manifests(path: str) -> Pinnable:
    found = pinnable(path)
    if found.problems:
        for problem in found.problems:
            click.echo(problem_text(problem), err=True)
        raise common.Refused("ManifestProblems", problems=count(len(found.problems), "problem"), path=path)
    return found


def _origins(found: Pinnable) -> Origins:
    """pip's own configuration, with the site's index in the place of pip's."""
    if len(found.indexes) > 1:
        raise Usage("SeveralIndexes", indexes=list(found.indexes))
    own = configured()
    return dataclasses.replace(own, index=found.indexes[0], extra=(), bare=False) if found.indexes else own


def _stacks(found: Pinnable, name: str | None) -> list[Stack]:
    """The stack of that name, or all. Raises Usage where there is none."""
    names = [stack.name for stack in found.stacks]
    if name is not None and name not in names:
        raise Usage("NoSuchStack", name=name, stacks=names, nearest=nearest(name, names))
    return [stack for stack in found.stacks if name in (None, stack.name)]


def _wanted(found: Pinnable, stack: str | None, environment: str | None, *, also_system: bool = False) -> list[Declared]:
    """Those that were asked for. Raises Usage where there is none, unless OS packages were asked for as well."""
    mine = [e for e in found.environments if stack in (None, e.stack) and environment in (None, e.name)]
    if not mine and not also_system:
        asked = f"{stack or '*'}/{environment or '*'}"
        names = [f"{e.stack}/{e.name}" for e in found.environments]
        raise Usage("NoSuchEnvironment", name=asked, environments=names, nearest=nearest(asked, names))
    return mine


def _written(found: Pinnable, declared: Declared, before: Lock | None, after: Lock, *, check: bool) -> dict[str, Any]:
    """Write the lock where it is not the same already; what a person or a program is told."""
    place = found.root / declared.lock
    changed = not place.is_file() or place.read_text(encoding="utf-8", errors="replace") != after.text()
    if changed and not check:
        write_text(place, after.text())
    moved = [{"name": n, "before": b, "after": a} for n, b, a in resolve.differences(before, after)]
    return {
        "lock": declared.lock,
        "changed": changed,
        "written": changed and not check,
        "removed": False,
        "packages": len(after.pinned),
        "moved": moved,
    }
