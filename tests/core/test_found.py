"""What ended badly once, shrunk, and what is rare: it ends well on the product, and still finds the fault where that is put in.

The point at which a fault struck moves with every write that the product makes more or less: each is tried in a whole range.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulated import gpu
from tests.simulated.acts import DRIVERS, Act, Apply, ByHand, Edit, Fault, WallClock
from tests.simulated.mutations import MUTATIONS
from tests.simulated.play import play


def folder_lost(at: int) -> list[Act]:
    """The power goes while the records' folder has no fsync in its parent: the lease is gone, and token 1 is given again."""
    return [Apply("one", (Fault("node-down", at),))]


def clock_set_back(at: int) -> list[Act]:
    """An answer is lost at the very end; the clock is set back; every plan that is made since looks older than that failure."""
    return [Apply("one", (Fault("answer-late", at),)), WallClock(-86400)]


def past_not_settled(at: int) -> list[Act]:
    """The controller dies before it settled a step; the first look after that is late, and a new step ends before the old one."""
    killed, late = Fault("controller-killed", at), Fault("answer-late", 1)
    return [Apply("one", (killed,)), Edit("/etc/motd", "two\n"), Apply("one", (late,))]


def settled_meanwhile(at: int) -> list[Act]:
    """A step is left behind; its controller sleeps while it takes that over, and another one does all that and more."""
    left = Apply("one", (Fault("answer-late", at), Fault("command-does-nothing", 1)))
    return [left, Apply("one", (Fault("replaced-by-another", 4),), on="a")]


def lost_again(at: int) -> list[Act]:
    """What a restart brought is lost later: another version is loaded by hand, and the note of that restart still stands."""
    by_hand = [ByHand("a", "driver", DRIVERS[1]), ByHand("a", "reboot", "now")]
    return [Edit("driver", DRIVERS[0]), Apply("one"), *by_hand, Apply("one", (Fault("answer-late", at),))]


def package_gone(at: int) -> list[Act]:
    """One package of the driver is removed by hand, which no other layer shows."""
    return [Edit("driver", DRIVERS[0]), Apply("one"), ByHand("a", gpu.PACKAGES[1], None), Apply("one", (Fault("answer-late", at),))]


def other_stream(at: int) -> list[Act]:
    """The driver is in a module stream that is not enabled yet."""
    return [Edit("driver", DRIVERS[-1]), Apply("one", (Fault("answer-late", at),))]


def away_and_not_asked(at: int) -> list[Act]:
    """A node does not come back from its restart, and the next one is restarted by a call that names it alone."""
    stays = Apply("one", (Fault("stays-away", at),), on="a")
    return [Edit("driver", DRIVERS[0]), Edit("max", "1"), stays, Apply("one", on="b")]


def taken(at: int) -> list[Act]:
    """A process takes a GPU before the next version comes."""
    return [Edit("driver", DRIVERS[0]), Apply("one"), ByHand("a", "gpu", "taken"), Edit("driver", DRIVERS[at])]


def refused(at: int) -> list[Act]:
    """The module does not let itself be loaded once."""
    return [Edit("driver", DRIVERS[0]), Apply("one", (Fault("module-refused", at),))]


def stays_away(at: int) -> list[Act]:
    """A node does not come back from its restart, and everything is applied once more."""
    stays = Apply("one", (Fault("stays-away", at),), on="a")
    return [Edit("driver", DRIVERS[0]), Edit("max", "1"), stays, Apply("one")]


def never_told(at: int) -> list[Act]:
    """The link breaks just before a node is told to restart."""
    return [Edit("driver", DRIVERS[0]), Apply("one", (Fault("link-lost", at),))]


def left_while_it_restarts(at: int) -> list[Act]:
    """An apply is interrupted while a node is told to restart; the next one takes that over, and the node goes down under it."""
    interrupted = Apply("one", (Fault("controller-interrupted", at),))
    return [Edit("driver", None), Apply("one"), Edit("driver", DRIVERS[0]), interrupted, Apply("one")]


FOUND: dict[str, tuple[Callable[[int], list[Act]], range]] = {
    "directories_without_fsync": (folder_lost, range(50, 75, 3)),
    "status_goes_by_the_clock": (clock_set_back, range(175, 220, 5)),
    "notes_of_reboots_stay": (lost_again, range(1, 2)),
    "missing_packages_are_not_counted": (package_gone, range(1, 2)),
    "only_enabled_streams_are_asked_for": (other_stream, range(1, 2)),
    "nodes_that_were_not_named_do_not_count": (away_and_not_asked, range(1, 2)),
    "users_of_gpus_are_nobody": (taken, range(1, 2)),
    "what_did_not_load_is_tried_again": (refused, range(1, 2)),
    "what_was_never_told_is_waited_for": (never_told, range(285, 315)),
    "a_node_that_goes_down_is_lost_to_adoption": (left_while_it_restarts, range(110, 170, 6)),
    "there_is_always_room": (stays_away, range(1, 2)),
    "settles_again": (settled_meanwhile, range(80, 140, 10)),
    "past_is_passed_over": (past_not_settled, range(180, 215, 4)),
}


def bad_ends(name: str) -> int:
    """How many of the sequences end badly."""
    sequence, points = FOUND[name]
    found = 0
    for at in points:
        try:
            play(sequence(at))
        except AssertionError:
            found += 1
    return found


@pytest.mark.parametrize("name", FOUND)
def test_what_once_ended_badly(name: str) -> None:
    assert bad_ends(name) == 0
    with MUTATIONS[name]():
        assert bad_ends(name) > 0, "the range of points does not meet the fault any more"
