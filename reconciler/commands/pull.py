"""`reconcile pull`: a node that keeps itself as its repository says, from a timer, without a controller."""

from __future__ import annotations

import getpass
import socket
from contextlib import closing
from typing import Any

import click

from reconciler import config
from reconciler.apply.journal import Journal
from reconciler.apply.statedir import StateDir
from reconciler.apply.work import Stop
from reconciler.commands import apply, common
from reconciler.commands.receive import checked_below, checked_ref, signed
from reconciler.controller.follower import Followed, Follower, signed_as
from reconciler.controller.repository import Repository
from reconciler.engine import Applied, Engine
from reconciler.errors import Usage
from reconciler.model.desired import DesiredState
from reconciler.model.outcome import first
from reconciler.model.plan import Selection
from reconciler.model.words import nearest
from reconciler.plan.local import local
from reconciler.pool import Pool
from reconciler.render import push
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
    with state.locked(), apply.signals(stop), closing(Journal(state.journal)) as journal:
        followed = _followed(journal, state, repository, cluster, guard)
        fine, desired = not followed.refused, followed.target.desired if followed.target else None
        if desired is None or name not in desired.nodes:
            declared = desired.nodes if desired else ()
            raise Usage("NoSuchNode", name=name, nearest=nearest(name, declared), cluster=desired.cluster if desired else "")
        targets = local(desired.nodes[name], desired.rollout.approve)
        if not targets:
            click.echo(push.NOTHING_LOCAL, err=True)
            return 0 if fine else 1
        applied = _apply(desired, Selection((name,), targets), journal, state.holder(), stop, settings.lease_ttl, as_json)
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


def _followed(journal: Journal, state: StateDir, url: str, cluster: str | None, guard: dict[str, Any]) -> Followed:
    """What the repository shows now; why its newest revision is not taken is said. Raises Refused: there is no other."""
    keys = Keys.named(guard["allowed_signers"], guard["gpg_keyring"])
    repository = Repository(url, checked_ref(guard["ref"]), state.mirror, mirrored=True, below=checked_below(guard["below"]))
    follower = Follower(repository, cluster, journal, signed_as(Mode(guard["signed"]), keys))
    followed, accept = follower.look(), guard["accept"]
    if followed.refused == "NonFastForward" and accept and len(accept) >= 7 and str(followed.head.commit).startswith(accept):
        journal.append("revision-approved", commit=followed.head.commit, by=getpass.getuser())
        followed = follower.look()
    if followed.refused:
        for line in push.not_taken(followed.refused, followed.data or {}):
            click.echo(line, err=True)
        if followed.target is None:
            raise common.Refused("PullRefused", repository=url)
        click.echo(push.kept(followed.commit or ""), err=True)
    return followed
