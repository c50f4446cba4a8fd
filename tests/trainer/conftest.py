"""A data root with a tiny model for the tests that train."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.trainer.launch import Site, site


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One for all tests; each takes run names of its own. These tests run in the trainer's environment."""
    return site(tmp_path_factory.mktemp("data"), Path(sys.executable))
