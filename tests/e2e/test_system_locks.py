"""System locks made from dnf's and apt's own repositories, and plans that use exactly what they say."""

from __future__ import annotations

from pathlib import Path

from lab import Lab
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import Nodes

EL, DEB = "locks/s/system-centos-stream-9.txt", "locks/s/system-debian-12.txt"
STACK = """apiVersion: reconcile/v1
kind: Versions
metadata: {name: s}
spec:
  os:
    centos-stream-9: {packages: {numactl: 2.0.19}}
    debian-12: {packages: {numactl: 2.0.*}}
"""


def entries(site: Site, lock: str) -> list[str]:
    return [line for line in (site.repo / lock).read_text().splitlines() if not line.startswith("#")]


def test_a_lock_is_what_nodes_are_offered_and_what_they_then_get(nodes: Nodes, small: Small) -> None:
    gpu, deb = nodes.fresh("gpu01", "deb01")
    gpu.run("rpm -q rpm")  # makes sqlite's index of readers, as any look does
    deb.run("apt-get -q update && apt-get -y -q install numactl=2.0.16-1")
    per_node = {"gpu01": {"versions": "s", "packages": {"tmux": "3.2a-*"}}, "deb01": {"versions": "s"}}
    site = small(nodes=("gpu01", "deb01"), per_node=per_node)
    (site.repo / "versions.yaml").write_text(STACK)
    before = {node.name: truth.fingerprint(node) for node in (gpu, deb)}
    assert "written" in site.ok("pin").stdout
    assert [truth.writes(before[node.name], truth.fingerprint(node)) for node in (gpu, deb)] == [[], []]
    assert entries(site, EL) == ["numactl 2.0.19-3.el9", "tmux 3.2a-5.el9"]
    assert entries(site, DEB) == ["numactl 2.0.16-1"]
    site.commit()
    site.replace("2.0.19-3.el9", "2.0.19-1.el9", EL)  # older than the newest, and the lock is what counts
    site.replace("2.0.16-1", "2.0.14-3", DEB)  # another one than there is: a prefix is met all the same
    assert site.ok("pin", "--only", "system", "--check").stdout.count("unchanged") == 2
    site.ok("apply")
    assert (truth.rpm(gpu, "numactl"), truth.rpm(gpu, "tmux")) == ("2.0.19-1.el9", "3.2a-5.el9")
    assert truth.deb(deb, "numactl") == "hi 2.0.16-1"
    site.replace("numactl 2.0.19-1.el9\n", "", EL)
    refused = site.run("plan")
    assert refused.code == 1
    said = f"versions.yaml:6:43: {EL} does not have numactl, declared is 2.0.19: run `reconcile pin` and commit it"
    assert said in refused.stderr


def test_the_lock_of_the_reference_site_is_what_pin_makes(lab: Lab, tmp_path: Path) -> None:
    site = Site.reference(lab, tmp_path)
    lock = site.repo / "locks/lab/system-centos-stream-9.txt"
    lock.write_text(lock.read_text().replace("10.88.0.", f"{lab.config.subnet}."))
    assert "unchanged" in site.ok("pin", "--only", "system", "--check").stdout
