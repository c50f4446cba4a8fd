"""Nodes and sites for the end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import Lab
from tests.e2e.site import Site
from tests.e2e.truth import Nodes

Small = Callable[..., Site]


@pytest.fixture(scope="package")
def nodes(lab: Lab) -> Iterator[Nodes]:
    """The lab's nodes; as they were when these tests are over."""
    found = Nodes(lab)
    yield found
    found.restore()


@pytest.fixture
def small(lab: Lab, tmp_path: Path) -> Small:
    """Makes a site with just what is declared: `small(nodes=..., packages=..., files=...)`."""

    def make(**declared: Any) -> Site:
        return Site.small(lab, tmp_path, **declared)

    return make
