"""A controller over nodes of real node programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.site import World, manifest
from tests.nodes.fixtures import site
from tests.nodes.site import Site

__all__ = ["site"]


@pytest.fixture
def world(site: Site, tmp_path: Path) -> World:
    found = World(site, tmp_path)
    found.named("gpu01", "gpu02")
    found.commit({"site.yaml": manifest(), "motd": "one\n"})
    return found
