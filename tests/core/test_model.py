"""The core, proved by model: whatever happens to a site, one apply afterwards makes it as declared and the next one does nothing.

Real are the engine, the planner, the executor, journal, leases and adoption, and the node program with its steps, lease,
records and file writes; simulated are nodes, systemd, disks that lose what was not fsynced, links, clocks, and who has the turn.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.core.test_found import FOUND
from tests.simulated.mutations import MUTATIONS
from tests.simulated.play import Tally
from tests.simulated.search import search

EXAMPLES = 60  # about 8 s of the processor
SEED = 4
DEEP = 3000
ENOUGH = 2000  # sequences in which each mutation has to be found


def test_whatever_happens_a_site_converges() -> None:
    tally = Tally()
    search(EXAMPLES, SEED, tally)
    print(f"seed {SEED}: {tally}")
    assert tally.sequences >= EXAMPLES
    assert sum(tally.faults.values()) > EXAMPLES


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_whatever_happens_a_site_converges_thousands_of_times() -> None:
    start = int(os.environ.get("RECONCILE_MODEL_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"RECONCILE_MODEL_SEED={start}")
    search(DEEP, start, Tally())


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(set(MUTATIONS) - set(FOUND)))  # the rare ones have sequences of their own
def test_the_model_finds_a_fault_in_the_product(name: str) -> None:
    with MUTATIONS[name](), pytest.raises(AssertionError):
        search(ENOUGH, SEED, Tally(), shrink=False)
