"""Facts of the host on real nodes: what systemd, chrony and sshd of the node say for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lab import Lab
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import wait_until

HELD = "import resource,time;resource.setrlimit(resource.RLIMIT_MEMLOCK,(65536,65536));f=open('/dev/nvidiactl');time.sleep(600)"


@pytest.fixture
def site(small: Small) -> Site:
    return small(nodes=["gpu01", "deb01"])


def fact(site: Site, node: str, name: str) -> Any:
    found = site.run("observe", node, "--fact", name, "--json")
    assert found.code == 0, found.text
    return found.json["nodes"][node]["facts"][name]["value"]


@pytest.fixture
def failed_unit(lab: Lab) -> Iterator[str]:
    lab.nodes["gpu01"].run("systemd-run --unit=broken-one false")
    wait_until(lambda: "failed" in lab.nodes["gpu01"].run("systemctl is-failed broken-one", check=False).stdout, "the unit fails")
    yield "broken-one.service"
    lab.nodes["gpu01"].run("systemctl reset-failed broken-one")


def test_units_are_those_that_systemctl_lists(lab: Lab, site: Site, failed_unit: str) -> None:
    ours = fact(site, "gpu01", "units")
    argv = "systemctl list-units --all --full --no-legend --plain --type=service,timer,mount"
    rows = [line.split() for line in lab.nodes["gpu01"].run(argv).stdout.splitlines()]
    theirs = {row[0]: row[1:4] for row in rows if row[1] != "not-found"}
    steady = {name for name in set(ours) & set(theirs) if "session" not in name and "user" not in name}
    assert len(steady) > 20
    assert {n: [ours[n][k] for k in ("load", "active", "sub")] for n in steady} == {n: theirs[n] for n in steady}
    assert ours[failed_unit]["active"] == "failed"
    assert ours[failed_unit]["exit_status"] == 1
    assert f"1 unit failed of {len(ours)}: {failed_unit}" in site.run("observe", "gpu01", "--last").stdout


def test_a_process_that_holds_a_gpu_and_the_limits_of_sshd(lab: Lab, site: Site) -> None:
    node = lab.nodes["gpu01"]
    node.run("[ -e /dev/nvidiactl ] || touch /dev/nvidiactl")
    node.run(f'systemd-run --unit=training --property=LimitMEMLOCK=infinity python3 -c "{HELD}"')
    try:
        wait_until(lambda: "nvidiactl" in node.run("ls -l /proc/[0-9]*/fd 2>/dev/null", check=False).stdout, "it opens the device")
        groups = fact(site, "gpu01", "limits")["groups"]
    finally:
        node.run("systemctl stop training")
    mine = next(group for group in groups if group["unit"] == "training.service")
    assert mine["gpu"] is True
    assert mine["limits"]["memlock"] == {"soft": "65536", "hard": "65536"}
    sshd = next(group for group in groups if group["unit"] in ("sshd.service", "ssh.service"))
    # of the process: what systemd was told to give may be more than it could
    show = f"prlimit --pid {sshd['pids'][0]} --nofile --output SOFT,HARD --noheadings --raw"
    assert list(sshd["limits"]["nofile"].values()) == node.run(show).stdout.split()


def test_the_clock_follows_once_chrony_has_its_source(lab: Lab, site: Site) -> None:
    node = lab.nodes["gpu01"]
    node.run("rpm -q chrony || dnf -y install chrony")
    node.run("systemctl restart chronyd")
    wait_until(lambda: node.run("chronyc -n waitsync 1 0 0 1", check=False).returncode == 0, "chrony follows", 60)
    found = fact(site, "gpu01", "time-sync")
    assert found["tracking"]["synced"] is True
    assert found["daemons"] == ["chronyd"]
    assert [source["name"] for source in found["sources"]] == [node.run("chronyc -n -c sources").stdout.split(",")[2]]
    node.run("systemctl stop chronyd")
    found = fact(site, "gpu01", "time-sync")
    assert found["tracking"]["unknown"] == "DaemonDown"
    assert found["daemons"] == []
    assert fact(site, "deb01", "time-sync")["tracking"] == {"absent": "NotInstalled"}


def test_looking_writes_nothing(lab: Lab, site: Site) -> None:
    """No file of a node is newer after all facts were asked."""
    node = lab.nodes["deb01"]
    site.run("observe", "deb01")  # what is made at the first call
    node.run("touch /tmp/before")
    assert site.run("observe", "deb01").code == 0
    newer = "find / -xdev -newer /tmp/before -not -path '/proc/*' -not -path '/sys/*' -not -path '/dev/*' -type f"
    found = [
        path for path in node.run(newer).stdout.splitlines() if not path.startswith(("/var/log/", "/run/", "/var/lib/systemd/"))
    ]
    assert found == []


def test_names_are_those_of_the_nodes_own_resolver(lab: Lab, site: Site) -> None:
    node = lab.nodes["gpu01"]
    before = node.run("cat /etc/hosts").stdout
    try:
        node.run("printf '10.9.9.9 deb01\\n10.9.9.8 deb01.example deb01\\n' >> /etc/hosts")
        found = fact(site, "gpu01", "names")["names"]["deb01"]
        assert found["hosts"] == ["10.9.9.9", "10.9.9.8"]
        theirs = node.run("getent ahosts deb01").stdout.splitlines()
        assert sorted(found["addresses"]) == sorted({line.split()[0] for line in theirs})
    finally:
        node.run("cat > /etc/hosts", stdin=before)
