"""The fixtures `site` and `control`: nodes of real node programs, and a controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.transport import program
from tests.nodes.cluster import Controller, controller
from tests.nodes.site import Site, moved_program


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    sent = moved_program()
    monkeypatch.setattr(program, "packed", lambda: sent)
    found = Site(tmp_path / "nodes")
    yield found
    for slow in found.root.glob("*/slow"):  # what still runs ends now
        slow.unlink()
    found.close()


@pytest.fixture
def control(site: Site, tmp_path: Path) -> Controller:
    return controller(site, tmp_path / "controller")
