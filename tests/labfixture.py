"""The `lab` fixture: real nodes gpu01-gpu03 and deb01, for every test that asks for them (and the `lab` marker)."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lab import Lab

GPU_NODES, DEBIAN_NODES = 3, 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the lab is a lab test: `-m 'not lab'` leaves all of them out."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(400))  # the first one also builds the images


@pytest.fixture(scope="session")
def lab() -> "Iterator[Lab]":
    """A lab with all nodes ready. One that was up before is used, and left up; tests must leave nodes as they were."""
    from lab import Lab

    if os.geteuid() != 0:
        pytest.fail("the lab needs root: leave its tests out with -m 'not lab'")
    found = Lab.from_environment()
    was_up = found.is_up
    try:
        found.up(nodes=GPU_NODES, debian=DEBIAN_NODES)
        yield found
    finally:
        if not was_up:
            found.down()
