"""Which version of a package a lock shall have: the decision of `reconcile pin`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reconciler.model.version import Version


def choose(
    pins: Iterable[str], offered: Sequence[Version], installed: Iterable[Version], before: Version | None, *, upgrade: bool
) -> Version | None:
    """Of what is on offer (oldest first) and meets every pin: what the lock has, else what most nodes have, else the newest.

    `installed`: one version for each node that has the package. `upgrade`: the newest. None: nothing on offer meets them all.
    """
    wanted = tuple(pins)
    fit = [version for version in offered if all(version.meets(pin) for pin in wanted)]
    if not fit or upgrade:
        return fit[-1] if fit else None
    if before in fit:
        return before
    common = Counter(version for version in installed if version in fit)
    return max(fit, key=lambda version: (common[version], fit.index(version)))
