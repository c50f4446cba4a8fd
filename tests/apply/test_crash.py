"""The controller dies after each of its records in turn; a plain apply then converges, and every step ran exactly once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reconciler.apply.journal import CRASH, read
from tests.nodes.cluster import FILES, Controller, controller, desired
from tests.nodes.site import Site

REPOSITORY = Path(__file__).parents[2]
NODES = ("a", "b")


def die_after(records: int, at: Path) -> int:
    """One apply in a process of its own; how it ended."""
    argv = [sys.executable, "-m", "tests.nodes.cluster", str(at / "site"), str(at / "controller"), *NODES]
    environment = {**os.environ, CRASH: str(records)}
    return subprocess.run(argv, cwd=REPOSITORY, env=environment, timeout=60, stderr=subprocess.DEVNULL, check=False).returncode


def ran(site: Site) -> dict[str, list[str]]:
    """What ran on each node: commands as they were seen there, file steps as the node recorded them."""
    files = {n: [r["title"] for r in site.steps(n) if r["title"] == "write-file" and r["state"] == "done"] for n in NODES}
    return {n: [*site.commands(n), *files[n]] for n in NODES}


def test_a_crash_after_every_record(site: Site, control: Controller, tmp_path: Path) -> None:
    assert control.apply(desired(NODES, FILES)).exit == 0
    once = {n: [f"hostnamectl set-hostname -- {n}", "write-file"] for n in NODES}
    assert ran(site) == once
    total = len(control.records())
    places = {number: tmp_path / str(number) for number in range(1, total + 1)}
    with ThreadPoolExecutor(3) as side_by_side:
        died = list(side_by_side.map(die_after, places, places.values()))
    assert died == [-signal.SIGKILL] * total
    for number, at in places.items():
        later = controller(Site(at / "site"), at / "controller")
        assert len(later.records()) == number
        assert later.apply(desired(NODES, FILES)).exit == 0, number
        assert ran(later.site) == once, number
        unchanged = {n: later.site.records(n) for n in NODES}
        assert later.apply(desired(NODES, FILES)).exit == 0
        assert {n: later.site.records(n) for n in NODES} == unchanged, number
        assert [r["seq"] for r in read(later.state.journal)] == list(range(1, len(later.records()) + 1))
        shutil.rmtree(at)
