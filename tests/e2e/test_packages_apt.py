"""Packages by apt, and clusters in which some nodes have dnf and some apt."""

from __future__ import annotations

import pytest

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import Nodes


@pytest.fixture(scope="module")
def debian(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, LabNode]:
    """deb01 and a site for it alone."""
    node = nodes.one("deb01")
    return Site.small(lab, tmp_path_factory.mktemp("apt"), nodes=("deb01",)), node


def declare(site: Site, **packages: str) -> None:
    site.declare(nodes=("deb01",), packages={name.replace("_", "-"): version for name, version in packages.items()})


def held(site: Site, code: str, resource: str) -> str:
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert found.code == 2
    assert found.reasons("deb01")[resource] == code
    message: str = found.changes("deb01")[resource]["hold"]["message"]
    done = site.run("apply")
    assert done.code == 2
    assert f"held: {message}" in done.stdout
    return message


def test_looking_changes_no_list_and_no_cache(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    before = truth.fingerprint(node)
    declare(site, numactl="2.0.16-1", htop="present")
    assert site.ok("plan").verdict.startswith("2 changes on 1 node")
    assert truth.writes(before, truth.fingerprint(node)) == []


def test_up_down_held_and_away(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    for version in ("2.0.16-1", "2.0.18-1", "2.0.14-3"):
        runs = truth.apt_runs(node)
        declare(site, numactl=version, tmux="present")
        site.ok("apply")
        assert truth.deb(node, "numactl") == f"hi  {version}".replace("  ", " ")
        assert truth.apt_runs(node) == runs + 1
        assert truth.deb(node, "tmux") == "ii 3.3a-3"
    node.run("apt-get -y upgrade")
    assert truth.deb(node, "numactl") == "hi 2.0.14-3", "the hold keeps it"
    before = truth.fingerprint(node)
    assert "0 changes" in site.ok("apply").verdict
    assert truth.writes(before, truth.fingerprint(node)) == []
    node.run("apt-mark unhold numactl")
    found = site.run("drift", "--json")
    assert (found.code, found.reasons("deb01")) == (2, {"Package/numactl": "drift"})
    assert [f["path"] for f in found.changes("deb01")["Package/numactl"]["fields"]] == ["lock"]
    site.ok("apply")
    assert node.run("apt-mark showhold").stdout == "numactl\n"
    declare(site, numactl="absent", tmux="absent", htop="3.2.1-1")
    runs = truth.apt_runs(node)
    site.ok("apply")
    assert [truth.deb(node, name) for name in ("numactl", "tmux", "htop")] == [None, None, "hi 3.2.1-1"]
    assert truth.apt_runs(node) == runs + 1, "one transaction"
    assert "0 changes" in site.ok("apply").verdict


def test_a_present_package_that_somebody_holds_is_removed_and_installed_all_the_same(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    declare(site, telnet="present")
    site.ok("apply")
    node.run("apt-mark hold telnet")
    assert "0 changes" in site.ok("apply").verdict
    declare(site, telnet="absent")
    site.ok("apply")
    assert truth.deb(node, "telnet") is None


def test_versions_on_offer_are_named(debian: tuple[Site, LabNode]) -> None:
    site, _ = debian
    declare(site, numactl="9.9-1")
    said = held(site, "VersionNotOffered", "Package/numactl")
    assert said == "no repository of the node has numactl 9.9-1; there are 2.0.14-3, 2.0.16-1, 2.0.18-1"
    declare(site, no_such_package="present")
    assert held(site, "PackageNotOffered", "Package/no-such-package") == "no repository of the node has no-such-package"


def test_a_missing_dependency_is_named(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    declare(site, needs_missing="present")
    done = site.run("apply")
    assert done.code == 3
    assert "libnothere9" in done.stdout
    assert truth.deb(node, "needs-missing") is None


@pytest.mark.parametrize(("name", "left"), [("broken-preinst", None), ("broken-postinst", "iF 1.0-1")])
def test_a_failing_maintainer_script(debian: tuple[Site, LabNode], name: str, left: str | None) -> None:
    site, node = debian
    declare(site, **{name: "present"})
    done = site.run("apply")
    assert done.code == 3
    assert "deb01  failed" in done.stdout
    assert name in done.stdout.split("deb01  failed", 1)[1]
    assert truth.deb(node, name) == left
    if left:  # half installed: not present, not absent, and nothing that we would guess about
        assert "half way" in held(site, "HalfInstalled", f"Package/{name}")
    node.run(f"dpkg --purge --force-all {name}")
    declare(site)
    site.ok("apply")


def test_removal_of_what_others_need_is_held(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    url = f"{site.lab.config.url}/debs/nvidia"
    node.run(f"echo 'deb [trusted=yes] {url} ./' > /etc/apt/sources.list.d/n.list; apt-get update; apt-get -y install libcuda1")
    declare(site, libnvidia_ml1="absent")
    assert "libcuda1" in held(site, "StillNeeded", "Package/libnvidia-ml1")
    assert truth.deb(node, "libnvidia-ml1") == "ii 580.95.05-1"
    declare(site, libnvidia_ml1="absent", libcuda1="absent")
    site.ok("apply")
    assert truth.deb(node, "libnvidia-ml1") is None


def test_a_configuration_file_that_was_changed_on_the_node_asks_nothing_and_stays(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    declare(site, config_file="1.0-1")
    site.ok("apply")
    node.run("echo mine > /etc/config-file.conf")
    declare(site, config_file="1.1-1")
    site.ok("apply")
    assert truth.deb(node, "config-file") == "hi 1.1-1"
    assert truth.text(node, "/etc/config-file.conf") == "mine\n"


def test_another_apt_at_work_is_waited_for(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    node.run(": > /var/log/lab-slow.log")
    truth.hold_slow(node)
    node.run("systemd-run --unit=by-hand apt-get -y install slow-install=1.0-1")
    truth.slow_started(node)
    declare(site, tmux="3.3a-2")
    running = site.start("apply")
    truth.wait_in(node, "ps -C apt-get -o args= | grep -q tmux")
    truth.let_go(node)
    done = running.result()
    assert done.code == 0, done.text
    assert truth.deb(node, "tmux") == "hi 3.3a-2"
    assert truth.slow_runs(node) == ["start", "end"]


def test_a_repository_that_does_not_answer_holds(debian: tuple[Site, LabNode]) -> None:
    site, node = debian
    node.run("sed -i 's/:8000/:8001/' /etc/apt/sources.list.d/lab.list")
    try:
        declare(site, chrony="present")
        assert "8001" in held(site, "RepositoriesUnreadable", "Package/chrony")
    finally:
        node.run("sed -i 's/:8001/:8000/' /etc/apt/sources.list.d/lab.list")


def test_a_cluster_of_dnf_and_apt_in_one_apply(nodes: Nodes, small: Small) -> None:
    """Each node by its own manager; the manager that is not declared is the distribution's."""
    first, second, third = nodes.fresh("gpu01", "gpu02", "deb01")
    versions = {"gpu01": "2.0.19-3.el9", "gpu02": "2.0.19-3.el9", "deb01": "2.0.18-1"}
    declared = {
        "nodes": tuple(versions),
        "packages": {"htop": "present", "telnet": "absent"},
        "files": {"/etc/site/motd": "one cluster\n"},
        "per_node": {name: {"packages": {"numactl": version}, "packageManager": None} for name, version in versions.items()},
    }
    site = small(**declared)
    done = site.ok("apply")
    assert "9 changes on 3 nodes" in done.verdict
    assert [truth.rpm(node, "numactl") for node in (first, second)] == ["2.0.19-3.el9"] * 2
    assert truth.deb(third, "numactl") == "hi 2.0.18-1"
    assert [truth.text(node, "/etc/site/motd") for node in (first, second, third)] == ["one cluster\n"] * 3
    assert "0 changes" in site.ok("apply").verdict
    third.run("apt-mark unhold numactl; apt-get -y install numactl=2.0.14-3 --allow-downgrades")
    second.run("dnf -y remove htop")
    found = site.run("drift", "--json")
    assert (found.code, found.reasons("deb01"), found.reasons("gpu02")) == (
        2,
        {"Package/numactl": "drift"},
        {"Package/htop": "drift"},
    )
    site.ok("apply")
    assert truth.deb(third, "numactl") == "hi 2.0.18-1"
