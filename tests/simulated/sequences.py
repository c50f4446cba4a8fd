"""Hypothesis strategies for sequences of acts."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.simulated import acts, gpu
from tests.simulated.machine import LOCKS

# points of an apply: an empty one has 20, one of all that the model can declare about 250
POINTS = st.one_of(st.integers(1, 20), st.integers(1, 60), st.integers(1, 150))
SEEDS = st.integers(0, 1 << 16)

_nodes, _controllers = st.sampled_from(acts.NODES), st.sampled_from(acts.CONTROLLERS)
_gpu_nodes, _drivers = st.sampled_from(acts.GPU_NODES), st.sampled_from(acts.DRIVERS)
_texts = st.sampled_from((None, "one\n", "two\n", "three\n"))
_ensured = st.sampled_from((None, "present", "absent", *acts.VERSIONS, acts.NOT_OFFERED))
_faults = st.lists(st.builds(acts.Fault, st.sampled_from(sorted(acts.FAULTS)), POINTS), max_size=5).map(tuple)

EDITS = st.one_of(
    st.builds(acts.Edit, st.sampled_from(acts.FILES), _texts),
    st.builds(acts.Edit, st.sampled_from(acts.PACKAGES), _ensured),
    st.builds(acts.Edit, st.just("max"), st.sampled_from(("1", "2", "67%", "3"))),
    st.builds(acts.Edit, st.just("canary"), st.sampled_from((None, *acts.NODES))),
)
DRIFTS = st.one_of(
    st.builds(acts.ByHand, _nodes, st.sampled_from(acts.FILES), _texts),
    st.builds(acts.ByHand, _nodes, st.sampled_from(acts.PACKAGES), st.sampled_from((None, *acts.VERSIONS))),
    st.builds(acts.ByHand, _nodes, st.sampled_from(("/etc/hostname", "/proc/sys/kernel/hostname")), st.just("evil\n")),
    st.builds(acts.ByHand, _nodes, st.just("/" + LOCKS), st.sampled_from((None, "# ours\nomega-0:1-1.*\n", "alpha-0:3-1.*\n"))),
)
_later = st.one_of(st.integers(1, 60), st.integers(60, 250))
# places that an apply passes once a node at most: a later fault would not meet them
_own = st.builds(acts.Fault, st.sampled_from(("gpu-taken", "module-not-built", "module-refused", "stays-away")), st.integers(1, 60))
_driver_faults = st.lists(
    st.one_of(_own, st.builds(acts.Fault, st.sampled_from(sorted(acts.DRIVER_FAULTS)), _later)), max_size=3
).map(tuple)
DRIVERS = st.one_of(
    st.builds(acts.Edit, st.just("driver"), _drivers),
    st.builds(acts.ByHand, _gpu_nodes, st.just("driver"), st.one_of(st.none(), _drivers)),
    st.builds(acts.ByHand, _gpu_nodes, st.sampled_from(gpu.PACKAGES), st.sampled_from((None, *(f"{v}-1" for v in acts.DRIVERS)))),
    st.builds(acts.ByHand, _gpu_nodes, st.just("module"), st.one_of(st.none(), _drivers)),
    st.builds(acts.ByHand, _gpu_nodes, st.just("gpu"), st.sampled_from((None, "taken"))),
    st.builds(acts.ByHand, _gpu_nodes, st.just("reboot"), st.just("now")),
    st.builds(acts.Power, _gpu_nodes, st.booleans(), SEEDS),
    st.just(acts.Edit("max", "1")),
)
APPLIES = st.one_of(
    st.builds(acts.Apply, _controllers, _faults, SEEDS),
    st.builds(acts.Apply, _controllers, _faults, SEEDS, st.integers(0, 3)),
    st.builds(acts.Apply, _controllers, _faults, SEEDS, st.none(), _nodes),
)
REST = st.one_of(
    st.builds(acts.Rollback, st.integers(1, 4)),
    st.builds(acts.Look, _controllers),
    st.builds(acts.Power, _nodes, st.booleans(), SEEDS),
    st.just(acts.Up()),
    st.builds(acts.Passes, st.sampled_from((1, 10, 59, 61, 1000))),
    st.builds(acts.WallClock, st.sampled_from((-86400, 3600))),
    st.builds(acts.Heal, _controllers),
)
BETWEEN = st.lists(st.one_of(EDITS, EDITS, DRIFTS, DRIFTS, REST), max_size=3)
CHAPTERS = st.tuples(BETWEEN, APPLIES).map(lambda found: [*found[0], found[1]])
# a plan that is reviewed while the site goes on, carried out, and perhaps carried out again
REVIEWS = st.tuples(
    st.builds(acts.Look, _controllers),
    st.lists(st.one_of(EDITS, DRIFTS), max_size=1),
    st.lists(st.builds(acts.Apply, _controllers, _faults, SEEDS, st.just(0)), min_size=1, max_size=2),
).map(lambda found: [found[0], *found[1], *found[2]])
# a driver comes, and is upset
UPGRADES = st.tuples(
    st.lists(DRIVERS, max_size=3),
    st.builds(acts.Edit, st.just("driver"), st.one_of(_drivers, _drivers, st.none())),
    st.builds(acts.Apply, _controllers, _driver_faults, SEEDS),
    st.lists(DRIVERS, max_size=3),
    st.lists(st.builds(acts.Apply, _controllers, _driver_faults, SEEDS, st.none(), st.one_of(st.none(), _gpu_nodes)), max_size=1),
).map(lambda found: [*found[0], found[1], found[2], *found[3], *found[4]])
SEQUENCES = st.lists(st.one_of(CHAPTERS, CHAPTERS, REVIEWS, UPGRADES), min_size=1, max_size=6).map(
    lambda chapters: [act for chapter in chapters for act in chapter]
)
