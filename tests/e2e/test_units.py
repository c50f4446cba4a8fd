"""Units of a real systemd: made, healed, restarted for what they read, and told apart from those that only seem to run."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import File, Site
from tests.e2e.truth import Nodes

INSTALL = "[Install]\nWantedBy=multi-user.target\n"
SITE = f"[Service]\nExecStart=/bin/sh -c 'cat /etc/site.conf; exec sleep infinity'\n{INSTALL}"
TIMER = "[Timer]\nOnUnitActiveSec=1h\nUnit=once.service\n[Install]\nWantedBy=timers.target\n"
ONCE = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >> /root/once'\n"
WORKER = "[Service]\nExecStart=/bin/sleep infinity\n"
ON = {"enabled": "true", "state": "started"}
UNITS: dict[str, dict[str, Any]] = {
    "site.service": {"content": SITE, **ON},
    "once.timer": {"content": TIMER, **ON},
    "once.service": {"content": ONCE},
    "ran.service": {"content": f"{ONCE}{INSTALL}", **ON},
    "worker@.service": {"content": WORKER},
    "worker@a.service": {"state": "started"},
    "dnf-makecache.timer": {"enabled": "false", "state": "stopped"},
}
CONF = {"/etc/site.conf": File("one\n", restart=["site.service"])}
DROP_IN = "/etc/systemd/system/site.service.d/10.conf"


def shown(node: LabNode, unit: str, *names: str) -> list[str]:
    lines = node.run(f"systemctl show --property={','.join(names)} -- {unit}").stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines)
    return [found[name] for name in names]


def pid(node: LabNode, unit: str = "site.service") -> str:
    return shown(node, unit, "MainPID")[0]


@pytest.fixture(scope="module")
def site_and_node(lab: Lab, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, LabNode]:
    """Everything of UNITS on a fresh node, by one apply after the template that one of them needs."""
    node = nodes.one()
    node.run("mkdir -p /etc/systemd/system; printf '[Service]\\nExecStart=/bin/true\\n' > /etc/systemd/system/worker@.service")
    site = Site.small(lab, tmp_path_factory.mktemp("units"), units=UNITS, files=CONF)
    done = site.ok("apply")
    assert "failed" not in done.text
    return site, node


def test_made_and_then_nothing_is_written(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    assert shown(node, "site.service", "ActiveState", "UnitFileState", "NeedDaemonReload") == ["active", "enabled", "no"]
    assert shown(node, "once.timer", "ActiveState", "UnitFileState") == ["active", "enabled"]
    assert shown(node, "worker@a.service", "ActiveState", "SubState") == ["active", "running"]
    assert truth.text(node, "/root/once") == "ran\n"
    assert truth.stat(node, "/etc/systemd/system/site.service") == "644 root root regular file"
    before = truth.fingerprint(node), pid(node)
    assert "0 changes" in site.ok("apply").verdict
    assert truth.moved(before[0], truth.fingerprint(node)) == []
    assert pid(node) == before[1]


def test_what_was_spoilt_by_hand_is_drift_and_heals(site_and_node: tuple[Site, LabNode]) -> None:
    site, node = site_and_node
    node.run(
        "systemctl stop once.timer; systemctl disable once.timer;"
        "systemctl mask --now worker@a.service;"
        "echo '# by hand' >> /etc/systemd/system/site.service"
    )
    before = pid(node)
    found = site.run("drift", "--json")
    fields = {name: [f["path"] for f in change["fields"]] for name, change in found.changes("gpu01").items()}
    assert fields == {
        "SystemdUnit/site.service": ["content", "startedAfter"],
        "SystemdUnit/once.timer": ["enabled", "state"],
        "SystemdUnit/worker@a.service": ["enabled", "state"],
    }
    site.ok("apply")
    assert shown(node, "once.timer", "ActiveState", "UnitFileState") == ["active", "enabled"]
    assert shown(node, "worker@a.service", "ActiveState", "LoadState") == ["active", "loaded"]
    assert truth.text(node, "/etc/systemd/system/site.service") == SITE
    assert pid(node) != before
    assert "0 changes" in site.ok("apply").verdict


def test_restarted_for_a_file_once_also_after_a_crash_between(site_and_node: tuple[Site, LabNode]) -> None:
    """The controller dies right after the file was written: the restart that is still due is found on the node."""
    site, node = site_and_node
    before = pid(node)
    site.declare(units=UNITS, files={"/etc/site.conf": File("two\n", restart=["site.service"])})
    records = len(site.journal())
    for after in range(records + 3, records + 12):
        died = site.run("apply", RECONCILE_CRASH_AFTER=str(after - records))
        assert died.code in (0, -signal.SIGKILL), died.text
        if truth.text(node, "/etc/site.conf") == "two\n":
            break
    assert died.code == -signal.SIGKILL
    assert pid(node) == before, "not restarted yet: or this test tests nothing"
    assert "startedAfter" in site.run("plan", "--json").stdout
    site.ok("apply")
    assert pid(node) != before
    again = pid(node)
    assert "0 changes" in site.ok("apply").verdict
    assert pid(node) == again


def test_units_that_cannot_run_fail_with_their_own_words(nodes: Nodes, small: Small) -> None:
    node = nodes.one("gpu02")
    dying = f"[Service]\nExecStart=/bin/sh -c 'echo last words; sleep 0.7; exit 3'\n{INSTALL}"
    site = small(nodes=("gpu02",), units={"dies.service": {"content": dying, **ON}})
    done = site.run("apply")
    assert done.code == 3
    assert "last words" in done.stdout
    assert "Result=exit-code ExecMainStatus=3" in done.stdout
    assert site.run("plan", "--json").changes("gpu02")["SystemdUnit/dies.service"]["fields"] == [
        {"path": "state", "before": "failed", "after": "started"}
    ]
    looping = dying.replace("[Service]\n", "[Service]\nRestart=always\nRestartSec=600\n")
    site.declare(nodes=("gpu02",), units={"dies.service": {"content": looping, **ON}, "none.service": ON})
    done = site.run("apply")
    assert (done.code, "SubState=auto-restart" in done.stdout) == (3, True), done.text
    assert site.run("plan", "--json").reasons("gpu02") == {
        "SystemdUnit/dies.service": "CrashLooping",
        "SystemdUnit/none.service": "NoSuchUnit",
    }
    # right at last: the loop ends with the new content
    site.declare(nodes=("gpu02",), units={"dies.service": {"content": SITE.replace("cat /etc/site.conf; ", ""), **ON}})
    site.ok("apply")
    assert "0 changes" in site.ok("apply").verdict
    node.run(f"mkdir -p {DROP_IN.rsplit('/', 1)[0].replace('site.', 'dies.')}")
    node.run(f"printf '[Service]\\nNice=5\\n' > {DROP_IN.replace('site.', 'dies.')}; systemctl daemon-reload")
    held = site.run("apply")
    assert held.code == 2
    assert "dies.service.d/10.conf" in held.stdout
