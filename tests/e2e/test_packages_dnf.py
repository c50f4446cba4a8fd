"""Packages by dnf: every way up and down, and every way in which it cannot be done."""

from __future__ import annotations

import pytest

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.site import GPUS, Site
from tests.e2e.truth import Nodes


@pytest.fixture(scope="module")
def one(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, LabNode]:
    """gpu01 and a site for it alone; each test declares what it needs, and leaves the node able to change packages."""
    node = nodes.one()
    node.run("echo 0 > /etc/lab/slow-seconds")
    return Site.small(lab, tmp_path_factory.mktemp("dnf")), node


def held(site: Site, code: str, resource: str) -> str:
    """What a plan says of the one resource that is held there; apply ends with 2 because of it."""
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert found.code == 2
    assert found.reasons("gpu01")[resource] == code
    message: str = found.changes("gpu01")[resource]["hold"]["message"]
    assert "?" not in message
    done = site.run("apply")
    assert done.code == 2
    assert f"{resource}  held: {message}" in done.stdout
    assert "1 held" in done.stdout.splitlines()[-1]
    return message


def test_up_down_and_away(one: tuple[Site, LabNode]) -> None:
    site, node = one
    runs = len(truth.transactions(node))
    versions = ("2.0.18-2.el9", "2.0.19-3.el9", "2.0.19-1.el9")
    for i, version in enumerate(versions, start=1):
        site.declare(packages={"numactl": version})
        assert "1 change on 1 node" in site.ok("apply").verdict
        assert truth.rpm(node, "numactl") == version
        assert truth.locks(node) == [f"numactl-0:{version}.*"]
        assert len(truth.transactions(node)) == runs + i
    node.run("dnf -y upgrade")
    assert truth.rpm(node, "numactl") == versions[-1], "the lock keeps it"
    site.declare(packages={"numactl": "2.0.19"})  # without a release: what is there fits
    assert "0 changes" in site.ok("apply").verdict
    site.declare(packages={"numactl": "absent"})
    assert "- Package/numactl" in site.ok("apply").stdout
    assert truth.rpm(node, "numactl") is None
    assert truth.locks(node) == []


def test_install_remove_and_downgrade_are_one_transaction(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"numactl": "2.0.19-3.el9", "tmux": "3.2a-5.el9", "telnet": "present", "htop": "absent"})
    site.ok("apply")
    runs = len(truth.transactions(node))
    site.declare(packages={"numactl": "2.0.18-2.el9", "tmux": "absent", "telnet": "present", "htop": "3.3.0-1.el9"})
    assert "1 package transaction," in site.ok("plan").stdout
    site.ok("apply")
    assert truth.transactions(node)[0] == "D, E, I"
    assert len(truth.transactions(node)) == runs + 1
    found = {name: truth.rpm(node, name) for name in ("numactl", "tmux", "htop")}
    assert found == {"numactl": "2.0.18-2.el9", "tmux": None, "htop": "3.3.0-1.el9"}
    assert sorted(truth.locks(node)) == ["htop-0:3.3.0-1.el9.*", "numactl-0:2.0.18-2.el9.*"]
    assert "0 changes" in site.ok("apply").verdict


def test_a_version_that_no_repository_has_is_held_and_the_others_go_on(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"numactl": "9.9.9-1.el9", "lustre-client": "2.16.0-1.el9"}, files={"/etc/beside": "x\n"})
    said = held(site, "VersionNotOffered", "Package/numactl")
    assert said == "no repository of the node has numactl 9.9.9-1.el9; there are 2.0.18-2.el9, 2.0.19-1.el9, 2.0.19-3.el9"
    assert truth.rpm(node, "lustre-client") == "2.16.0-1.el9"
    assert truth.text(node, "/etc/beside") == "x\n"
    assert truth.rpm(node, "numactl") != "9.9.9-1.el9"


def test_a_package_that_nobody_has_is_held(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"no-such-package": "present"}, files={"/etc/beside2": "x\n"})
    assert held(site, "PackageNotOffered", "Package/no-such-package") == "no repository of the node has no-such-package"
    assert truth.text(node, "/etc/beside2") == "x\n"


def test_a_failing_pre_scriptlet_fails_its_node_in_rpms_own_words(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"broken-pre": "present"}, files={"/etc/after": "x\n"})
    done = site.run("apply")
    assert done.code == 3
    assert "gpu01  failed" in done.stdout
    assert "broken-pre" in done.stdout.split("gpu01  failed", 1)[1]
    assert "PREIN scriptlet" in done.stdout
    assert truth.rpm(node, "broken-pre") is None
    assert truth.stat(node, "/etc/after") == "none", "a node stops at its first failure"
    assert truth.lease(node) is not None
    assert truth.units(node) == []
    assert site.run("apply").code == 3  # and again, and it does not get stuck
    site.declare(files={"/etc/after": "x\n"})
    site.ok("apply")


def test_a_failing_scriptlet_beside_other_changes_is_not_taken_for_success(one: tuple[Site, LabNode]) -> None:
    """dnf's shell hides failures behind status 0: only what is there afterwards counts."""
    site, node = one
    site.declare(packages={"telnet": "present"})
    site.ok("apply")
    site.declare(packages={"broken-pre": "present", "telnet": "absent"})
    done = site.run("apply")
    assert done.code == 3
    assert "Package/broken-pre: version is absent, declared" in done.stdout
    assert "PREIN scriptlet" in done.stdout, "the words of rpm"
    assert truth.rpm(node, "broken-pre") is None
    site.declare()
    site.ok("apply")


def test_a_failing_upgrade_keeps_what_was_there(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"broken-upgrade": "1.0-1.el9"})
    site.ok("apply")
    site.declare(packages={"broken-upgrade": "1.1-1.el9"})
    done = site.run("apply")
    assert done.code == 3
    assert "PREIN scriptlet" in done.stdout
    assert truth.rpm(node, "broken-upgrade") == "1.0-1.el9"
    assert [line for line in truth.locks(node) if "broken" in line] == ["broken-upgrade-0:1.0-1.el9.*"]
    site.declare(packages={"broken-upgrade": "1.0-1.el9"})
    assert "0 changes" in site.ok("apply").verdict


def test_a_failing_post_scriptlet_is_told_although_the_package_is_there(one: tuple[Site, LabNode]) -> None:
    """rpm counts it as installed, and so do we; what it said is in the step's record on the node, and shown."""
    site, node = one
    site.declare(packages={"broken-post": "present"})
    done = site.ok("apply")
    assert truth.rpm(node, "broken-post") == "1.0-1.el9"
    record = truth.steps(node)[-1]
    assert "POSTIN scriptlet" in record["results"][-1]["out"] + record["results"][-1]["err"]
    assert "POSTIN scriptlet" in done.text, "success with a warning is not silent"
    assert "0 changes" in site.ok("apply").verdict


def test_a_missing_dependency_is_named(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"needs-missing": "present"})
    done = site.run("apply")
    assert done.code == 3
    assert "nothing provides libnothere.so.9" in done.stdout
    assert truth.rpm(node, "needs-missing") is None


def test_removal_of_what_others_need_is_held(one: tuple[Site, LabNode]) -> None:
    site, node = one
    url = f"{site.lab.config.url}/rpms/rhel9/x86_64/"
    node.run(f"printf '[n]\\nname=n\\nbaseurl={url}\\ngpgcheck=0\\n' > /etc/yum.repos.d/n.repo")
    needed, needs = "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda13"
    node.run(f"dnf -y install {needs}")
    runs = len(truth.transactions(node))
    site.declare(packages={needed: "absent"})
    assert f"is needed by (installed) {needs}" in held(site, "StillNeeded", f"Package/{needed}")
    assert truth.rpm(node, needed) == "4.7.0-1"
    assert len(truth.transactions(node)) == runs
    site.declare(packages={needed: "absent", needs: "absent"})  # with who needs it, it may go
    site.ok("apply")
    assert truth.rpm(node, needed) is None


@pytest.mark.parametrize(
    "spoil",
    [
        "sed -i 's/^numactl.*/numactl-0:2.0/' /etc/dnf/plugins/versionlock.list",
        "printf 'numactl-0:2.0.18-2.el9.*\\n' >> /etc/dnf/plugins/versionlock.list",
        "printf '%s\\n' numactl-0:2.0.19-3.el9.* htop-0:3.3.0-1.el9.* '# remark' '!x-1:1-1.*' > /etc/dnf/plugins/versionlock.list",
        ": > /etc/dnf/plugins/versionlock.list",
    ],
    ids=["cut off", "two versions", "another version beside foreign lines", "empty"],
)
def test_a_spoilt_lock_is_mended_and_foreign_lines_stay(one: tuple[Site, LabNode], spoil: str) -> None:
    site, node = one
    site.declare(packages={"numactl": "2.0.19-1.el9"})
    site.ok("apply")
    node.run(spoil)
    foreign = [
        line for line in truth.text(node, "/etc/dnf/plugins/versionlock.list").splitlines() if not line.startswith("numactl")
    ]
    assert site.run("drift", "--json").reasons("gpu01") == {"Package/numactl": "drift"}
    site.ok("apply")
    lines = truth.text(node, "/etc/dnf/plugins/versionlock.list").splitlines()
    assert [line for line in lines if line.startswith("numactl-0:2.0.19-1.el9.*")] == ["numactl-0:2.0.19-1.el9.*"]
    assert [line for line in lines if line in foreign] == foreign
    node.run("dnf -y upgrade numactl")
    assert truth.rpm(node, "numactl") == "2.0.19-1.el9", "dnf honours it"
    assert "0 changes" in site.ok("apply").verdict


def test_without_the_versionlock_plugin_nothing_would_keep_a_version(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"numactl": "2.0.19-1.el9", "htop": "present"})
    site.ok("apply")
    node.run("mv /etc/dnf/plugins/versionlock.conf /root/")
    try:
        assert "versionlock plugin is not installed" in held(site, "NoVersionlockPlugin", "Package/numactl")
        assert "Package/htop" not in site.run("plan", "--json").changes("gpu01")
    finally:
        node.run("mv /root/versionlock.conf /etc/dnf/plugins/")
    assert "0 changes" in site.ok("apply").verdict


def test_a_repository_that_does_not_answer_holds_and_is_named(one: tuple[Site, LabNode]) -> None:
    site, node = one
    site.declare(packages={"numactl": "2.0.19-1.el9", "telnet": "absent"})
    site.ok("apply")
    node.run("sed -i 's/:8000/:8001/' /etc/yum.repos.d/lab.repo")
    site.declare(packages={"numactl": "2.0.19-1.el9", "telnet": "present"}, files={"/etc/without": "x\n"})
    try:
        assert "repo 'lab'" in held(site, "RepositoriesUnreadable", "Package/telnet")
        assert truth.text(node, "/etc/without") == "x\n"
        assert truth.rpm(node, "telnet") is None
    finally:
        node.run("sed -i 's/:8001/:8000/' /etc/yum.repos.d/lab.repo")
    site.ok("apply")
    assert truth.rpm(node, "telnet") is not None


# ---- one node of three


@pytest.fixture(scope="module")
def trio(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, list[LabNode]]:
    machines = nodes.fresh(*GPUS)
    return Site.small(lab, tmp_path_factory.mktemp("trio"), nodes=GPUS), machines


def test_a_node_that_fails_does_not_stop_the_others(trio: tuple[Site, list[LabNode]]) -> None:
    site, (first, second, third) = trio
    site.declare(nodes=GPUS, packages={"tmux": "3.2a-4.el9"}, per_node={"gpu02": {"packages": {"broken-pre": "present"}}})
    done = site.run("apply")
    assert done.code == 3
    assert "gpu[01,03]  converged, 1 change" in done.stdout
    assert "gpu02  failed" in done.stdout
    assert "1 node failed" in done.stdout
    assert [truth.rpm(node, "tmux") for node in (first, third)] == ["3.2a-4.el9"] * 2
    assert truth.rpm(second, "broken-pre") is None
    assert {entry["exit"] for entry in site.ok("history", "--json").json} == {3}


def test_a_damaged_rpm_database_is_unknown_and_never_absent(trio: tuple[Site, list[LabNode]]) -> None:
    site, (_, second, third) = trio
    site.declare(nodes=GPUS, packages={"tmux": "3.2a-4.el9", "telnet": "absent", "htop": "present"}, files={"/etc/still": "x\n"})
    second.run(
        "cp -a /var/lib/rpm /root/rpm; rm -f /var/lib/rpm/rpmdb.sqlite-*; head -c 20000 /dev/urandom > /var/lib/rpm/rpmdb.sqlite"
    )
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert found.code == 2
    reasons = found.reasons("gpu02")
    assert {name: code for name, code in reasons.items() if name.startswith("Package/")} == dict.fromkeys(
        ("Package/tmux", "Package/telnet", "Package/htop"), reasons["Package/tmux"]
    )
    assert reasons["Package/tmux"] in ("CommandFailed", "EmptyDatabase")
    done = site.run("apply")
    assert done.code == 2
    assert "3 held" in done.stdout
    assert truth.text(second, "/etc/still") == "x\n"
    assert truth.rpm(third, "htop") is not None
    assert [s for s in truth.steps(second) if s["title"] == "package-transaction" and s["plan"] == done_plan(site)] == []
    second.run("rm -rf /var/lib/rpm; cp -a /root/rpm /var/lib/rpm")
    site.ok("apply")
    assert (truth.rpm(second, "tmux"), truth.rpm(second, "htop")) == ("3.2a-4.el9", "3.4.1-1.el9")


def done_plan(site: Site) -> str:
    """The id of the latest apply."""
    plan: str = site.ok("history", "--json").json[-1]["plan"]
    return plan
