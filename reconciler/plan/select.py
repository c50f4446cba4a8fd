"""What a person asked for by `--on` and `--target`, checked against what is declared."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.errors import Usage
from reconciler.kinds import KINDS
from reconciler.model.desired import DesiredState
from reconciler.model.plan import Selection
from reconciler.model.words import nearest


def select(desired: DesiredState, nodes: Iterable[str], targets: Iterable[str]) -> Selection:
    """The selection. Raises Usage: NoSuchNode, NoSuchTarget, each with the nearest name."""
    chosen, wanted = tuple(dict.fromkeys(nodes)), tuple(dict.fromkeys(targets))
    for name in chosen:
        if name not in desired.nodes:
            raise Usage("NoSuchNode", name=name, nearest=nearest(name, desired.nodes), cluster=desired.cluster)
    declared = {str(r.id) for n in desired.nodes.values() for r in n.resources}
    for target in wanted:
        if target not in KINDS and target not in declared:
            raise Usage("NoSuchTarget", name=target, nearest=nearest(target, [*KINDS, *declared]), kinds=list(KINDS))
    return Selection(chosen, wanted)
