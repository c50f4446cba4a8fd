"""Many sequences, from one seed: how the test, its deep lane and the acceptance script look for one that ends badly."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.simulated.acts import Act
from tests.simulated.play import Tally, play
from tests.simulated.sequences import SEQUENCES

GENERATE, SHRINK = (Phase.generate,), (Phase.generate, Phase.shrink)


def search(examples: int, start: int, tally: Tally, *, shrink: bool = True) -> None:
    """Play so many sequences; the same ones for the same `start`. Raises AssertionError with the shortest that ends badly."""

    @seed(start)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=SHRINK if shrink else GENERATE,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(SEQUENCES)
    def ends_well(sequence: list[Act]) -> None:
        try:
            play(sequence, tally)
        except ValueError as e:  # a record that cannot be read any more is an end as bad as any
            raise AssertionError(f"{type(e).__name__}: {e}") from e

    run: Callable[[], None] = ends_well
    run()
