"""The controller dies after any record that it writes: the next plain apply ends well, and nothing is done twice."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.site import GPUS, Site
from tests.e2e.test_converge import REFERENCE_PACKAGES
from tests.e2e.truth import Nodes

RECORDS = 105  # that an apply of the reference site to three fresh nodes writes; `test_how_many_records_an_apply_writes` holds it
SHORT = (2, 30, 55, 80, 105)


def crash(lab: Lab, nodes: Nodes, folder: Path, after: int) -> None:
    """An apply that dies after so many records, and what a plain one has to make of it."""
    machines = nodes.fresh(*GPUS)
    site = Site.reference(lab, folder)
    died = site.run("apply", RECONCILE_CRASH_AFTER=str(after))
    assert died.code == -signal.SIGKILL, died.text
    assert len(site.journal()) == after
    done = site.ok("apply")
    for node in machines:
        whole(site, node, done.stderr)
    settled = {node.name: (truth.steps(node), truth.lease(node)) for node in machines}
    assert "0 changes" in site.ok("apply").verdict
    assert site.ok("drift").verdict == "drift: 0 resources"
    assert {node.name: (truth.steps(node), truth.lease(node)) for node in machines} == settled


def whole(site: Site, node: LabNode, told: str) -> None:
    """Everything as declared, one transaction, each step exactly once, nothing at work and nobody's lease."""
    names = " ".join(REFERENCE_PACKAGES)
    shown = node.run(f"rpm -q --qf '%{{NAME}} %{{VERSION}}-%{{RELEASE}}\\n' {names}", check=False).stdout
    found = dict(line.split() for line in shown.splitlines() if "not installed" not in line)
    assert found == {name: version for name, version in REFERENCE_PACKAGES.items() if version}
    assert truth.transactions(node) == ["Install"], told
    for path, source in (("/etc/motd", "files/motd"), ("/etc/profile.d/site.sh", "files/site.sh")):
        assert truth.text(node, path) == (site.repo / source).read_text()
    records = truth.steps(node)
    done = Counter((r["title"], resource) for r in records for resource in r["resources"] if r["state"] == "done")
    assert set(done.values()) == {1}
    assert {r["state"] for r in records} <= {"done", "interrupted"}
    assert all(r["settled"] for r in records)
    assert truth.units(node) == []
    lease = truth.lease(node)
    assert lease is not None
    assert lease["holder"] == ""


def test_how_many_records_an_apply_writes(lab: Lab, nodes: Nodes, tmp_path: Path) -> None:
    nodes.fresh(*GPUS)
    site = Site.reference(lab, tmp_path)
    site.ok("apply")
    assert len(site.journal()) == RECORDS


@pytest.mark.parametrize("after", SHORT)
def test_crash_here_and_there(lab: Lab, nodes: Nodes, tmp_path: Path, after: int) -> None:
    crash(lab, nodes, tmp_path, after)


@pytest.mark.deep
@pytest.mark.parametrize("after", range(1, RECORDS + 1))
def test_crash_after_every_record(lab: Lab, nodes: Nodes, tmp_path: Path, after: int) -> None:
    crash(lab, nodes, tmp_path, after)
