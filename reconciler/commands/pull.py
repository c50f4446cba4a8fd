"""`reconcile pull`: a node that keeps itself as its repository says, from a timer, without a controller."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from reconciler import config
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.apply.work import Stop
from reconciler.commands import apply, common
from reconciler.commands.receive import checked_below, checked_ref, signed
from reconciler.engine import Applied, Engine
from reconciler.errors import SourceError, Usage
from reconciler.model.desired import DesiredState
from reconciler.model.outcome import first
from reconciler.model.plan import Selection
from reconciler.model.words import nearest
from reconciler.plan.local import local
from reconciler.pool import Pool
from reconciler.render import push
from reconciler.render.problems import problem_text
from reconciler.render.reasons import error
from reconciler.source import load_desired, signatures
from reconciler.source.mirror import Mirror
from reconciler.source.signatures import Keys, Mode
from reconciler.transport.local import LocalTransport


@click.command()
@click.argument("repository", metavar="URL")
@click.option("--ref", default="refs/heads/main", show_default=True, metavar="REF", help="The branch that is followed.")
@click.option("--below", default="", metavar="FOLDER", help="Manifests are below this folder of the repository.")
@click.option("--node", metavar="NAME", help="Which node this is. Default: its host name, without a domain.")
@click.option("--accept", metavar="SHA", help="Take this commit although it does not go on from the last one.")
@common.cluster
@signed
@common.state_dir
@common.as_json
def pull(repository: str, node: str | None, state_dir: str | None, cluster: str | None, as_json: bool, **guard: Any) -> int:
    """Fetch the manifests and apply what they say of this node: what concerns it alone, and no other node.

    A repository that cannot be fetched, is broken, rewritten or not signed as asked changes nothing: the last good revision is
    kept up, and the exit status is 1.
    """
    settings = config.load(state_dir)
    state = StateDir(settings.state_dir)
    name = node or socket.gethostname().partition(".")[0]
    stop = Stop()
    with state.locked(), apply.signals(stop):
        mirror = Mirror(state.root / "mirror.git")
        desired, fine = _desired(mirror, repository, cluster, guard)
        if name not in desired.nodes:
            raise Usage("NoSuchNode", name=name, nearest=nearest(name, desired.nodes), cluster=desired.cluster)
        targets = local(desired.nodes[name], desired.rollout.approve)
        if not targets:
            click.echo(push.NOTHING_LOCAL, err=True)
            return 0 if fine else 1
        journal = Journal(state.journal)
        try:
            applied = _apply(desired, Selection((name,), targets), journal, state.holder(), stop, settings.lease_ttl, as_json)
        finally:
            journal.close()
    apply.show(applied, as_json)
    return first({applied.exit, 0 if fine else 1})


def _apply(
    desired: DesiredState, selection: Selection, journal: Journal, holder: str, stop: Stop, ttl: float, as_json: bool
) -> Applied:
    pool = Pool(LocalTransport(), desired.nodes)
    try:
        with common.progress(as_json, common.stream) as emit:
            return Engine(desired, pool, selection, apply.showing_plan(emit, as_json)).apply(journal, holder, None, stop, ttl)
    finally:
        pool.close()


def _desired(mirror: Mirror, url: str, cluster: str | None, guard: dict[str, Any]) -> tuple[DesiredState, bool]:
    """The newest good revision; False: it is an older one, and why was said. Raises Refused(PullRefused) where there is none."""
    checked_ref(guard["ref"])
    below, before = checked_below(guard["below"]), mirror.taken()
    try:
        commit = mirror.fetch(url, guard["ref"])
        against = list(_against(mirror, before, commit, guard))
        loaded = None if against else load_desired(mirror.folder / below, commit=commit, cluster=cluster)
    except SourceError as e:
        commit, against, loaded = "", [error(e)], None
    if loaded and loaded.desired:
        mirror.take(commit)
        return loaded.desired, True
    for line in [*against, *(problem_text(problem) for problem in (loaded.problems if loaded else ()))]:
        click.echo(line, err=True)
    kept = load_desired(mirror.folder / below, commit=before, cluster=cluster).desired if before else None
    if kept is None:
        raise common.Refused("PullRefused", repository=url)
    click.echo(push.kept(before or ""), err=True)
    return kept, False


def _against(mirror: Mirror, before: str | None, commit: str, guard: dict[str, Any]) -> Iterable[str]:
    """Why a commit is not taken, whatever it declares."""
    accepted = guard["accept"] is not None and len(guard["accept"]) >= 7 and commit.startswith(guard["accept"])
    if before and not accepted and not mirror.follows(before, commit):
        yield push.rewritten(before, commit)
    mode = Mode(guard["signed"])
    if mode is not Mode.NONE:
        keys = Keys(*(Path(path) if path else None for path in (guard["allowed_signers"], guard["gpg_keyring"]))).checked()
        yield from map(problem_text, signatures.judged(mirror.folder, mode, keys, before, commit))
