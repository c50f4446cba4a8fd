"""Which version `reconcile pin` chooses, of what is on offer and what the nodes have."""

from __future__ import annotations

import pytest

from reconciler.model.version import Version
from reconciler.plan.pin import choose

OFFERED = "2.0.18-2 2.0.19-1 2.0.19-3 2.1.0-1"
#      pins, installed on the nodes, locked before, chosen, with --upgrade
CASES = {
    "nobody-has-it": ("2.0.*", "", "", "2.0.19-3", "2.0.19-3"),
    "an-exact-version-without-its-release": ("2.0.19", "", "", "2.0.19-3", "2.0.19-3"),
    "what-most-have": ("2.0.*", "2.0.18-2 2.0.18-2 2.0.19-3", "", "2.0.18-2", "2.0.19-3"),
    "of-as-many-the-newer": ("2.0.*", "2.0.18-2 2.0.19-1", "", "2.0.19-1", "2.0.19-3"),
    "what-most-have-of-an-exact-one": ("2.0.19", "2.0.19-1 2.0.19-1", "", "2.0.19-1", "2.0.19-3"),
    "what-most-have-does-not-meet-it": ("2.0.*", "2.1.0-1 2.1.0-1 2.0.18-2", "", "2.0.18-2", "2.0.19-3"),
    "what-most-have-is-not-on-offer": ("2.0.*", "2.0.17-1 2.0.17-1", "", "2.0.19-3", "2.0.19-3"),
    "the-lock-stays": ("2.0.*", "2.0.18-2 2.0.18-2", "2.0.19-1", "2.0.19-1", "2.0.19-3"),
    "the-lock-does-not-meet-it-any-more": ("2.1.*", "2.0.19-1", "2.0.19-1", "2.1.0-1", "2.1.0-1"),
    "the-lock-is-not-on-offer-any-more": ("2.0.*", "2.0.17-1", "2.0.17-1", "2.0.19-3", "2.0.19-3"),
    "every-pin-is-met": ("2.* 2.0.*", "2.1.0-1 2.1.0-1", "2.1.0-1", "2.0.19-3", "2.0.19-3"),
    "pins-that-contradict": ("2.1.* 2.0.*", "", "", None, None),
    "nothing-on-offer-meets-it": ("3.*", "3.0-1 3.0-1", "3.0-1", None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_version_that_is_chosen(case: str) -> None:
    pins, installed, before, wanted, upgraded = CASES[case]
    offered, there = ([Version.parse(v) for v in text.split()] for text in (OFFERED, installed))
    former = Version.parse(before) if before else None
    for upgrade, expected in ((False, wanted), (True, upgraded)):
        found = choose(pins.split(), offered, there, former, upgrade=upgrade)
        assert (str(found) if found else None) == expected
