"""The half of `reconcile pin` that asks nodes: locks of OS packages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from reconciler import system_pins
from reconciler.commands import common
from reconciler.errors import Usage
from reconciler.events import now
from reconciler.model.desired import DesiredNode
from reconciler.model.outcome import first
from reconciler.model.words import nearest
from reconciler.pinning.wheelhouse import write_text
from reconciler.pool import Pool
from reconciler.render import locks as render
from reconciler.render import notes
from reconciler.source.pinnable import Pinnable
from reconciler.source.stacks import Stack
from reconciler.system_pins import Made, Resolved
from reconciler.transport.ssh import SshTransport


def resolved(found: Pinnable, stacks: Iterable[Stack], on: tuple[str, ...], *, upgrade: bool, as_json: bool) -> Resolved:
    """Every system lock of these stacks, not written yet. No node is asked where none of them says a version.

    Raises Usage: NoSuchNode, and NoNodeToAsk where packages are declared and no node is there to ask.
    """
    assert found.system is not None
    chosen = tuple(stacks)
    nodes = _chosen(found, common.host_names(on))
    wanted = {name for stack in chosen for name in system_pins.asked(stack, found.nodes)}
    asked = {name: node for name, node in nodes.items() if name in wanted}
    if not asked and (unasked := [stack.name for stack in chosen if system_pins.declares(stack, found.nodes)]):
        raise Usage("NoNodeToAsk", stacks=unasked)
    pool = Pool(SshTransport(), asked)
    try:
        with common.progress(as_json) as emit:
            if asked:
                emit(now("observing", nodes=list(asked)))

            def done(name: str) -> None:
                emit(now("observed", name))

            return system_pins.resolve(chosen, found.system, found.nodes, pool, among=asked, upgrade=upgrade, done=done)
    finally:
        pool.close()


def _chosen(found: Pinnable, names: list[str]) -> dict[str, DesiredNode]:
    for name in names:
        if name not in found.nodes:
            raise Usage("NoSuchNode", name=name, nearest=nearest(name, found.nodes), cluster=", ".join(found.clusters))
    return {name: node for name, node in found.nodes.items() if not names or name in names}


def refused(result: Resolved, *, as_json: bool) -> int:
    """Say why nothing can be written, where that is so; the exit status then, else 0."""
    for line in [*notes.failures(result.failures), *render.refusals(result.refusals)]:
        click.echo(line, err=True)
    if as_json and (result.failures or result.refusals):
        common.print_json({"locks": [], **render.refused(result.failures, result.refusals)})
    for path in result.unseen:
        click.echo(render.unseen(path), err=True)
    codes = {4 if failure.kind == "unreachable" else 3 for failure in result.failures.values()}
    return first({0} | codes | ({1} if result.refusals else set()))


def written(root: Path, made: Made, *, check: bool) -> dict[str, Any]:
    """Write one lock, or remove it, unless it is as it should be; what a person or a program is told."""
    place = root / made.path
    old = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else None
    new = made.after.text() if made.after else None
    if old != new and not check:
        if new is None:
            place.unlink()
        else:
            write_text(place, new)
    before = {n: str(p.version) for n, p in made.before.packages.items()} if made.before else {}
    after = {n: str(p.version) for n, p in made.after.packages.items()} if made.after else {}
    moved = [{"name": n, "before": before.get(n), "after": after.get(n)} for n in sorted(before.keys() | after.keys())]
    return {
        "lock": made.path,
        "changed": old != new,
        "written": old != new and not check,
        "removed": new is None,
        "packages": len(after),
        "moved": [move for move in moved if move["before"] != move["after"]],
    }
