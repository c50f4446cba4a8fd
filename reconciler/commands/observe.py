"""`reconcile observe`: the facts of nodes, with their age."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from reconciler import config
from reconciler.apply import observations
from reconciler.apply.statedir import StateDir
from reconciler.commands import common, observe_call
from reconciler.errors import Usage
from reconciler.events import now
from reconciler.facts.catalogue import LIVE
from reconciler.facts.live import About, LiveFact
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.model.observed import Failure
from reconciler.model.seen import Merge, NodeSeen, Seen, cursors, later
from reconciler.model.words import nearest
from reconciler.plan.select import select
from reconciler.pool import Pool
from reconciler.render import observed as render
from reconciler.render.style import style_for
from reconciler.survey import about, chosen, survey
from reconciler.transport.base import Transport
from reconciler.transport.local import LocalTransport
from reconciler.transport.record import RecordingTransport
from reconciler.transport.replay import ReplayTransport
from reconciler.transport.ssh import SshTransport


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--path", default=".", metavar="PATH", help="The repository that declares them.")
@common.commit
@common.cluster
@click.option("--local", is_flag=True, help="This machine, with no manifest and no SSH; with --from, all that are recorded.")
@click.option("--as", "local_name", metavar="NAME", help="With --local: what this machine is called; default: its host name.")
@click.option("--from", "recordings", metavar="DIR", help="From recorded nodes instead of real ones: no network, no root.")
@click.option("--fact", "names", multiple=True, metavar="FACT", help="Only this fact, whole. May be said several times.")
@click.option(
    "--environment", "environments", multiple=True, metavar="DIR", help="Also this Python environment, a path or a pattern."
)
@click.option("--fast", is_flag=True, help="Ask only what costs a node little; the rest as it was last seen.")
@click.option("--last", is_flag=True, help="Ask nobody: everything as it was last seen.")
@click.option("--costs", is_flag=True, help="Also what each fact cost on its node.")
@click.option("--record", metavar="DIR", help="Also record what the nodes answered, redacted, for --from.")
@common.state_dir
@common.as_json
def observe(
    nodes: tuple[str, ...],
    path: str,
    commit: str | None,
    cluster: str | None,
    local: bool,
    local_name: str | None,
    recordings: str | None,
    names: tuple[str, ...],
    environments: tuple[str, ...],
    fast: bool,
    last: bool,
    costs: bool,
    record: str | None,
    state_dir: str | None,
    as_json: bool,
) -> int:
    """Show the facts of nodes, each with its age: what is there, what is not, and what could not be known and why.

    NODE is a name or a host list, gpu[01-04]; all nodes of the cluster where none is given. Changes nothing.
    """
    observe_call.check(click.get_current_context())
    wanted = _facts(names)
    request = common.Request(path, commit, cluster=cluster, on=nodes, as_json=as_json)
    declared, asked = _without_manifest(recordings, local_name, nodes) if local else _declared(request, recordings)
    transport = ReplayTransport(Path(recordings)) if recordings else LocalTransport() if local else SshTransport()
    directory = None if recordings else StateDir(config.load(state_dir).state_dir).root / "observations"
    facts = () if last else chosen(wanted, names, fast=fast)
    observe_call.writable(record, directory if facts else None)
    merges = {fact.name: fact.merge for fact in LIVE if fact.merge}
    before = {name: observations.load(directory, name) if directory else None for name in asked}
    # a recording is whole: it begins where the log does
    abouts = {name: about(declared, name, {} if record else cursors(before[name], merges), environments) for name in asked}
    found, failures = _look(asked, abouts, facts, transport, as_json=as_json, record=record)
    seen = {name: _remembered(directory, name, (before[name], found.get(name)), merges) for name in asked}
    shown = {name: only for name, node in seen.items() if node and (only := _only(node, wanted)).facts}
    never = _never(shown, [name for name in asked if name not in failures], wanted)
    _show((shown, failures, never), as_json=as_json, whole=bool(names), costs=costs)
    return _status(failures, nothing=bool(never.keys() - shown.keys()))


def _facts(names: tuple[str, ...]) -> tuple[LiveFact, ...]:
    known = {fact.name: fact for fact in LIVE}
    for name in names:
        if name not in known:
            raise Usage("NoSuchFact", name=name, nearest=nearest(name, known), facts=list(known))
    return chosen(LIVE, names, fast=False)


Nodes = dict[str, DesiredNode]


def _without_manifest(recordings: str | None, said: str | None, wanted: tuple[str, ...]) -> tuple[Nodes, Nodes]:
    """This machine, or those that were recorded: all of them are asked, or those that are wanted. Raises Usage."""
    names = observe_call.recorded(recordings, common.host_names(wanted)) if recordings else [observe_call.local_name(said)]
    nodes = {name: DesiredNode(name, SshAccess("localhost"), ()) for name in names}
    return nodes, nodes


def _declared(request: common.Request, recordings: str | None) -> tuple[Nodes, Nodes]:
    """All nodes, whose names each is asked for, and the chosen ones, in the order of the manifest.

    Raises Usage for one that is not declared, and where there are no recordings at all.
    """
    if recordings:
        observe_call.recordings(recordings)
    desired, _ = common.desired_state(request)
    chosen_names = select(desired, common.host_names(request.on), ()).nodes
    nodes = dict(desired.nodes)
    return nodes, {name: node for name, node in nodes.items() if not chosen_names or name in chosen_names}


def _look(
    asked: Mapping[str, DesiredNode],
    abouts: Mapping[str, About],
    facts: tuple[LiveFact, ...],
    transport: Transport,
    *,
    as_json: bool,
    record: str | None,
) -> tuple[dict[str, NodeSeen], dict[str, Failure]]:
    """What the nodes answered, and who did not; what they answered is also recorded where `record` says."""
    if not facts:
        return {}, {}
    recorder = RecordingTransport(transport) if record else None
    pool = Pool(recorder or transport, asked)
    try:
        with common.progress(as_json) as emit:
            emit(now("observing", nodes=list(asked)))
            results = survey(pool, abouts, facts, lambda name: emit(now("observed", name)))
    finally:
        pool.close()
    if recorder and record:
        recorder.save(Path(record))
    seen = {name: result for name, result in results.items() if isinstance(result, NodeSeen)}
    return seen, {name: result for name, result in results.items() if isinstance(result, Failure)}


def _remembered(
    directory: Path | None, name: str, seen: tuple[NodeSeen | None, NodeSeen | None], merges: Mapping[str, Merge]
) -> NodeSeen | None:
    """What was found now over what was seen before; kept for the next time.

    `seen`: before, which the cursors came from (two looks at the same time may each add only to what they continued from), and now.
    """
    before, found = seen
    if found is None:
        return before
    both = later(before, found, merges)
    if directory:
        observations.save(directory, name, both)
    return both


def _only(node: NodeSeen, wanted: tuple[LiveFact, ...]) -> NodeSeen:
    """In the order of the catalogue; a fact that an older version kept and this one does not know is left out."""
    return dataclasses.replace(node, facts={fact.name: node.facts[fact.name] for fact in wanted if fact.name in node.facts})


def _never(shown: Mapping[str, NodeSeen], names: list[str], wanted: tuple[LiveFact, ...]) -> dict[str, tuple[str, ...]]:
    """By node, the wanted facts that nobody ever looked at: they are neither there nor absent."""
    seen: dict[str, Mapping[str, Seen]] = {name: shown[name].facts if name in shown else {} for name in names}
    never = {name: tuple(fact.name for fact in wanted if fact.name not in facts) for name, facts in seen.items()}
    return {name: facts for name, facts in never.items() if facts}


def _status(failures: Mapping[str, Failure], *, nothing: bool) -> int:
    """`nothing`: of some node there is nothing to show, though nobody tried to reach it."""
    kinds = {why.kind for why in failures.values()}
    return 3 if kinds - {"unreachable"} else 4 if kinds or nothing else 0


def _show(looked: render.Looked, *, as_json: bool, whole: bool, costs: bool) -> None:
    moment = time.time()
    if as_json:
        common.print_json(render.data(looked, moment))
        return
    lines = render.details(looked, moment) if whole else render.render(looked, moment, style_for(sys.stdout))
    click.echo("\n".join([*lines, *(["", *render.costs(looked[0])] if costs else [])]))
