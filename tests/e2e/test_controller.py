"""The controller as a process over the lab's nodes: killed in the middle of an apply and started again; two of them."""

from __future__ import annotations

import signal
import time

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.origin import controlled
from tests.e2e.truth import Nodes

TWO = ("gpu01", "gpu02")
FILES = {"/etc/motd": "one\n"}
SLOW = {"slow-install": "present"}
OFTEN = ("--interval", "1s")


def test_killed_in_the_middle_and_started_again(nodes: Nodes, small: Small) -> None:
    machines = nodes.fresh(*TWO)
    site = small(nodes=TWO, files=FILES, packages=SLOW)
    first = site.start("controller", "--repository", str(site.repo), *OFTEN)  # killed below
    limit = time.monotonic() + 60
    while not any(r["type"] == "intent" and r["title"] == "package-transaction" for r in site.journal()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    first.send(signal.SIGKILL)
    first.process.communicate(timeout=10)
    with controlled(site, str(site.repo), *OFTEN):
        assert site.run("wait", "--for", "Ready", "--timeout", "90s").code == 0
        for machine in machines:
            assert truth.text(machine, "/etc/motd") == "one\n"
            assert truth.transactions(machine) == ["Install"]  # the step that ran on by itself was taken over, not repeated
            lease = truth.lease(machine)
            assert lease is not None
            assert lease["holder"] == ""
        assert "2 of 2 nodes ready" in site.ok("status").stdout
        assert site.run("apply").code == 6  # the state directory has its one writer


def test_two_controllers_and_a_newer_commit(nodes: Nodes, small: Small) -> None:
    machines = nodes.fresh(*TWO)
    site = small(nodes=TWO, files=FILES)
    with controlled(site, str(site.repo), *OFTEN):
        assert site.run("wait", "--for", "Ready", "--timeout", "60s").code == 0
        again = site.start("controller", "--repository", str(site.repo), *OFTEN).result()
        assert again.code == 6
        assert "another reconcile" in again.stderr
        site.declare(nodes=TWO, files={"/etc/motd": "two\n"})
        limit = time.monotonic() + 30
        while any(truth.text(machine, "/etc/motd") != "two\n" for machine in machines):
            assert time.monotonic() < limit
    assert "the controller does not run" in site.ok("status").stdout
