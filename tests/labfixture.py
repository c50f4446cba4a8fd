"""The `lab` fixture: real nodes gpu01-gpu03 and deb01, for every test that asks for them (and the `lab` marker)."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lab import Lab

GPU_NODES, DEBIAN_NODES = 3, 1


def pytest_configure(config: pytest.Config) -> None:
    """Each of the processes that run tests side by side has a lab of its own: the configured one, and labs beside it."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if number := int(worker.removeprefix("gw")):
        from lab import LabConfig

        os.environ.update(LabConfig.from_environment().beside(number).environment)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the lab is a lab test: `-m 'not lab'` leaves all of them out."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(400))  # the first one also builds the images
            if group := shared(item):
                item.add_marker(pytest.mark.xdist_group(group))


def shared(item: pytest.Item) -> str:
    """The fixtures that a test has in common with others of its module: all of those run in one process, in their order."""
    info: Any = getattr(item, "_fixtureinfo", None)
    found = {name: made[-1] for name, made in info.name2fixturedefs.items()} if info else {}
    names = sorted(name for name, made in found.items() if made.scope in ("module", "class"))
    return f"{item.path.stem}:{'+'.join(names)}" if names else ""


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
