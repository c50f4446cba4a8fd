"""From fresh nodes to a second apply that finds nothing, and all that can drift in between."""

from __future__ import annotations

from typing import Any

import pytest

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import GPUS, File, Site
from tests.e2e.truth import Nodes

REFERENCE_PACKAGES = {
    "numactl": "2.0.19-3.el9",
    "tmux": "3.2a-4.el9",
    "htop": "3.4.1-1.el9",
    "lustre-client": "2.16.1-1.el9",
    "datacenter-gpu-manager-4-cuda13": "4.7.0-1",
    "telnet": None,
}


def test_fresh_nodes_converge_and_then_nothing_is_written(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> None:
    machines = nodes.fresh(*GPUS)
    site = Site.reference(lab, tmp_path_factory.mktemp("reference"))
    for node in machines:
        node.run("rpm -q bash")  # sqlite makes its index of readers at the first look of anybody
    before = {node.name: truth.fingerprint(node) for node in machines}

    planned = site.ok("plan")
    assert planned.verdict.startswith("33 changes on 3 nodes: lab-trio at ")
    assert site.run("plan", "--detailed-exitcode").code == 2
    assert "order: gpu01 (canary), then gpu[02-03]" in planned.stdout
    for node in machines:
        assert truth.writes(before[node.name], truth.fingerprint(node)) == [], f"plan wrote on {node.name}"
        assert truth.lease(node) is None

    applied = site.ok("apply")
    assert "33 changes on 3 nodes\n  gpu[01-03]  converged, 11 changes" in applied.stdout
    for node in machines:
        as_declared(site, node)

    after = {node.name: truth.fingerprint(node) for node in machines}
    records = {node.name: (truth.steps(node), truth.lease(node)) for node in machines}
    again = site.ok("apply")
    assert again.verdict.startswith("0 changes: lab-trio at ")
    assert again.stdout.rstrip().endswith("0 changes\n  gpu[01-03]  unchanged")
    assert site.ok("plan").verdict.startswith("0 changes: ")
    assert site.ok("drift").stdout == "drift: 0 resources\n"
    for node in machines:
        # not even the index that root's rpm makes at each look
        assert truth.moved(after[node.name], truth.fingerprint(node)) == [], f"a second apply wrote on {node.name}"
        assert (truth.steps(node), truth.lease(node)) == records[node.name], "an empty plan takes no lease"


def as_declared(site: Site, node: LabNode) -> None:
    """All of the reference site on one node, by one transaction, with nothing left at work."""
    assert {name: truth.rpm(node, name) for name in REFERENCE_PACKAGES} == REFERENCE_PACKAGES
    assert truth.transactions(node) == ["Install"]
    assert "numactl-0:2.0.19-3.el9.*" in truth.locks(node)
    assert "datacenter-gpu-manager-4-cuda13-1:4.7.0-1.*" in truth.locks(node)
    assert truth.text(node, "/etc/motd") == (site.repo / "files/motd").read_text()
    assert truth.stat(node, "/etc/profile.d/site.sh") == "644 root root regular file"
    assert {(s["state"], s["settled"]) for s in truth.steps(node)} == {("done", True)}
    assert [s["title"] for s in truth.steps(node)] == [
        "write-hosts",
        "write-file",
        "package-transaction",
        "version-lock",
        "write-file",
        "write-file",
        "write-file",
        "write-unit",
        "reload-units",
        "start-unit",
    ]
    assert node.run("systemctl is-active site-watch.service").stdout == "active\n"
    assert node.run("getent ahostsv4 gpu02 | cut -d' ' -f1 | sort -u").stdout.strip() == site.lab.nodes["gpu02"].address
    assert truth.units(node) == []
    held = truth.lease(node)
    assert held is not None
    assert held["holder"] == ""


def test_what_our_commands_make_is_readable_for_all_users_as_after_a_login(nodes: Nodes, small: Small) -> None:
    """dnf's records, a scriptlet's file and new folders: who logs in would have made them for everybody."""
    node = nodes.one()
    site = small(packages={"config-file": "1.0-1.el9", "slow-install": "present"}, files={"/etc/new/deeper/still/file": "x\n"})
    node.run("echo 0 > /etc/lab/slow-seconds")
    site.ok("apply")
    for folder in ("/etc/new", "/etc/new/deeper", "/etc/new/deeper/still"):
        assert truth.stat(node, folder) == "755 root root directory"
    assert truth.stat(node, "/var/log/lab-slow.log") == "644 root root regular file"
    assert truth.stat(node, "/var/lib/dnf/history.sqlite") == "644 root root regular file"
    assert node.run("cat /etc/new/deeper/still/file", user="nosudo").stdout == "x\n"
    assert truth.stat(node, "/var/lib/reconcile").startswith("700 ")
    node.run("find /var/lib/reconcile -type f -perm /077 | grep . && exit 1; true")


# ---- drift


@pytest.fixture(scope="module")
def converged(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, LabNode]:
    """gpu02, converged: packages and files of every sort. Each test heals what it spoils."""
    node = nodes.one("gpu02")
    site = Site.small(
        lab,
        tmp_path_factory.mktemp("drift"),
        nodes=("gpu02",),
        packages={"numactl": "2.0.19-1.el9", "tmux": "3.2a-4.el9", "htop": "present", "telnet": "absent"},
        files={"/etc/site/plain": "as declared\n", "/etc/site/own": File("mine\n", mode="0640", owner="ops", group="ops")},
    )
    site.ok("apply")
    return site, node


# What is spoilt at once, a round: resource -> (how, the fields that then differ). Every field of every kind, in every way.
CONTENT, NONE_LEFT, LINK = {"content"}, {"content", "mode", "owner", "group"}, {"type", "content", "mode"}
PLAIN, OWN, HOST = "File//etc/site/plain", "File//etc/site/own", "Hostname/gpu02"
DNF = "dnf -y --disableplugin=versionlock"
ROUNDS = {
    "downgraded, link, mode, static name": {
        "Package/numactl": (f"{DNF} install numactl-2.0.18-2.el9", {"version"}),
        PLAIN: ("ln -sf /etc/passwd /etc/site/plain", LINK),
        OWN: ("chmod 666 /etc/site/own", {"mode"}),
        HOST: ("echo wrong > /etc/hostname", {"static"}),
    },
    "upgraded, erased behind dnf's back, content, owner, running name": {
        "Package/numactl": (f"{DNF} install numactl-2.0.19-3.el9", {"version"}),
        "Package/htop": ("rpm -e htop", {"version"}),
        PLAIN: ("echo spoiled > /etc/site/plain", CONTENT),
        OWN: ("chown root /etc/site/own", {"owner"}),
        HOST: ("hostname other", {"running"}),
    },
    "removed, an absent one installed, lock of another version, one byte more, group, both names": {
        "Package/tmux": ("dnf -y remove tmux", {"version"}),
        "Package/telnet": ("dnf -y install telnet", {"version"}),
        "Package/numactl": ("sed -i s/2.0.19-1/2.0.19-3/ /etc/dnf/plugins/versionlock.list", {"lock"}),
        PLAIN: ("printf x >> /etc/site/plain", CONTENT),
        OWN: ("chgrp 4321 /etc/site/own", {"group"}),
        HOST: ("hostnamectl set-hostname third.example", {"static", "running"}),
    },
    "lock line deleted, emptied, setuid, name that is not there": {
        "Package/numactl": ("sed -i /^numactl/d /etc/dnf/plugins/versionlock.list", {"lock"}),
        PLAIN: (": > /etc/site/plain", CONTENT),
        OWN: ("chmod u+s /etc/site/own", {"mode"}),
        HOST: ("rm /etc/hostname", {"static"}),
    },
    "lock file deleted, dangling link, file deleted": {
        "Package/numactl": ("rm /etc/dnf/plugins/versionlock.list", {"lock"}),
        "Package/tmux": ("true", {"lock"}),
        PLAIN: ("ln -sf /nowhere /etc/site/plain", LINK),
        OWN: ("rm /etc/site/own", NONE_LEFT),
    },
    "folder of files deleted": {PLAIN: ("rm -r /etc/site", NONE_LEFT), OWN: ("true", NONE_LEFT)},
}


@pytest.mark.parametrize("round_", ROUNDS)
def test_drift_is_found_as_drift_and_healed(converged: tuple[Site, LabNode], round_: str) -> None:
    site, node = converged
    spoilt = ROUNDS[round_]
    node.run("; ".join(how for how, _ in spoilt.values()))
    found = site.run("drift", "--json")
    assert found.code == 2
    assert found.reasons("gpu02") == dict.fromkeys(spoilt, "drift")
    fields = {resource: {f["path"] for f in change["fields"]} for resource, change in found.changes("gpu02").items()}
    for resource, (_, wanted) in spoilt.items():
        assert fields[resource] >= wanted
        assert wanted == NONE_LEFT or fields[resource] - {"lock"} <= wanted | {"lock"}
    healed = site.ok("apply")
    assert f"{len(spoilt)} changes on 1 node" in healed.verdict
    assert all(f"{resource}  drift" in healed.stdout for resource in spoilt)
    healthy(node)


def healthy(node: LabNode) -> None:
    """gpu02 as it is declared."""
    packages = {"numactl": "2.0.19-1.el9", "tmux": "3.2a-4.el9", "htop": "3.4.1-1.el9", "telnet": None}
    assert {name: truth.rpm(node, name) for name in packages} == packages
    assert sorted(truth.locks(node)) == ["numactl-0:2.0.19-1.el9.*", "tmux-0:3.2a-4.el9.*"]
    assert truth.text(node, "/etc/site/plain") == "as declared\n"
    assert truth.stat(node, "/etc/site/plain") == "644 root root regular file"
    assert truth.stat(node, "/etc/site/own") == "640 ops ops regular file"
    assert node.run("cat /etc/hostname; hostname").stdout.split() == ["gpu02", "gpu02"]
    assert node.run("grep -c root:x /etc/passwd").stdout == "1\n"  # what a link led to was not written to


def test_after_all_that_there_is_no_drift(converged: tuple[Site, LabNode]) -> None:
    site, node = converged
    assert site.ok("drift").stdout == "drift: 0 resources\n"
    healthy(node)


def test_git_change_and_drift_are_told_apart(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    first: dict[str, Any] = {
        "packages": {"numactl": "2.0.18-2.el9", "tmux": "3.2a-4.el9"},
        "files": {"/etc/a": "a\n", "/etc/b": "b\n", "/etc/c": "c\n"},
    }
    site = small(**first)
    site.ok("apply")
    node.run("echo spoiled > /etc/a; dnf -y remove tmux; echo spoiled > /etc/c")
    site.declare(
        packages={"numactl": "2.0.19-3.el9", "tmux": "3.2a-4.el9"}, files={"/etc/a": "a\n", "/etc/b": "new\n", "/etc/c": "new\n"}
    )
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert found.code == 2
    assert found.reasons("gpu01") == {
        "Package/numactl": "git-change",
        "Package/tmux": "drift",
        "File//etc/a": "drift",
        "File//etc/b": "git-change",
        "File//etc/c": "git-change",  # both: Git says something new, and that is what will stand there
    }
    told = site.run("drift")
    assert told.code == 2
    assert told.verdict == "drift: 2 resources, 3 pending (Git changed; see `reconcile plan`)"
    assert "File//etc/b" not in told.stdout
    site.ok("apply")
    assert (truth.rpm(node, "numactl"), truth.rpm(node, "tmux")) == ("2.0.19-3.el9", "3.2a-4.el9")
    assert node.run("cat /etc/a /etc/b /etc/c").stdout == "a\nnew\nnew\n"
    # back to the first commit's text: Git changed again, although the node once looked like that
    site.declare(**first)
    assert set(site.ok("plan", "--json").reasons("gpu01").values()) == {"git-change"}
    site.ok("apply")
    assert site.ok("drift").verdict == "drift: 0 resources"


def test_what_was_right_from_the_start_can_drift_as_well(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    node.run("printf 'there before\\n' > /etc/ours; dnf -y install htop")
    site = small(packages={"htop": "present"}, files={"/etc/ours": "there before\n"})
    assert "0 changes" in site.ok("apply").verdict
    assert truth.lease(node) is None
    node.run("echo changed > /etc/ours; dnf -y remove htop")
    found = site.run("drift", "--json")
    assert found.code == 2
    assert found.reasons("gpu01") == {"Package/htop": "drift", "File//etc/ours": "drift"}
    site.ok("apply")
    assert truth.text(node, "/etc/ours") == "there before\n"


def test_a_second_controller_knows_drift_from_what_the_node_remembers(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/ours": "ours\n"})
    site.ok("apply")
    node.run("echo changed > /etc/ours")
    assert site.other("other").run("drift", "--json").reasons("gpu01") == {"File//etc/ours": "drift"}
