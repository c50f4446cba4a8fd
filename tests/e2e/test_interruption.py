"""What is cut off in the middle is neither lost nor done twice."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from lab import LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import Nodes

AFTER = {"/etc/after": "written after the packages\n"}


def slow(lab_nodes: Nodes, small: Small, **declared: Any) -> tuple[Site, LabNode]:
    """A fresh gpu01, and a site that wants slow-install there and a file afterwards: its transaction runs until `truth.let_go`."""
    node = lab_nodes.one()
    truth.hold_slow(node)
    return small(packages={"slow-install": "1.0-1.el9"}, files=AFTER, **declared), node


def once(site: Site, node: LabNode) -> None:
    """The transaction ran exactly once, everything is as declared, and nothing is left over."""
    assert truth.transactions(node) == ["Install"]
    assert truth.slow_runs(node) == ["start", "end"]
    assert truth.rpm(node, "slow-install") == "1.0-1.el9"
    assert truth.text(node, "/etc/after") == AFTER["/etc/after"]
    records = truth.steps(node)
    for title in ("package-transaction", "version-lock", "write-file"):
        assert [r["state"] for r in records if r["title"] == title] == ["done"]
    assert all(r["settled"] for r in records)
    assert truth.units(node) == []
    lease = truth.lease(node)
    assert lease is not None
    assert lease["holder"] == ""
    again = site.ok("apply")
    assert "0 changes" in again.verdict
    assert "took over" not in again.stderr


def test_the_link_is_cut_while_a_transaction_runs(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    node.cut()
    truth.let_go(node)
    truth.wait_in(node, "grep -q end /var/log/lab-slow.log")  # it goes on without us
    done = running.result()
    assert done.code == 4
    assert "gpu01  lost" in done.stdout
    node.heal()
    again = site.ok("apply")
    assert "gpu01: took over package transaction: done" in again.stderr
    assert "1 step, 0 package transactions" not in again.stdout
    assert " 0 package transactions" in again.stdout
    once(site, node)


def test_the_link_is_healed_before_anybody_gave_up(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    node.cut()
    truth.let_go(node)
    truth.wait_in(node, "grep -q end /var/log/lab-slow.log")
    node.heal()
    done = running.result()
    assert done.code == 0, done.text
    once(site, node)


@pytest.mark.parametrize("finished", [False, True], ids=["while it runs", "after it ended"])
def test_the_controller_is_killed_while_a_transaction_runs(nodes: Nodes, small: Small, finished: bool) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGKILL)
    assert running.result().code == -signal.SIGKILL
    waits = "still runs (package transaction): waiting for it, not repeating it"
    if finished:
        truth.let_go(node)
        truth.wait_in(node, "grep -q end /var/log/lab-slow.log")
        truth.wait_in(node, "systemctl show -p SubState reconcile-step-1-1 | grep -q exited")
        again = site.ok("apply")
        assert waits not in again.stderr
    else:
        planned = site.run("plan")
        assert planned.code == 0
        assert "a step is running on the node: package-transaction" in planned.stdout
        second = site.start("apply")
        second.says(waits)
        truth.let_go(node)
        again = second.result()
        assert again.code == 0, again.text
    assert "took over package transaction: done" in again.stderr
    once(site, node)


def test_another_controller_takes_over_after_the_first_was_killed(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply", RECONCILE_LEASE_TTL="2")
    truth.slow_started(node)
    running.send(signal.SIGKILL)
    running.result()
    truth.let_go(node)
    other = site.other("other")
    done = other.run("apply")
    while done.code == 6:  # until the dead one's lease ran out
        assert "another controller" in done.stderr
        done = other.run("apply")
    assert done.code == 0, done.text
    once(other, node)


def test_interrupted_once(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGINT)
    done = running.result()  # although the step runs on: a wait looks every 5 s whether it is still wanted
    assert done.code == 130
    assert "interrupted: no further step begins" in done.stderr
    assert "gpu01  interrupted" in done.stdout
    assert truth.stat(node, "/etc/after") == "none"
    assert [record["exit"] for record in site.journal() if record["type"] == "apply-finished"] == [130]
    truth.let_go(node)
    again = site.ok("apply")
    assert "took over package transaction: done" in again.stderr
    once(site, node)


def test_interrupted_twice_ends_at_once(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGTERM)
    running.says("interrupted")
    running.send(signal.SIGINT)
    assert running.process.wait(10) == 130
    assert truth.slow_runs(node) == ["start"], "the step went on alone"
    running.result()
    truth.let_go(node)
    site.ok("apply")
    once(site, node)


@pytest.mark.deep
def test_interrupted_between_nodes_leaves_the_others_untouched(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small, nodes=("gpu01", "gpu02"))
    second = nodes.one("gpu02")
    second.run("echo 0 > /etc/lab/slow-seconds")
    running = site.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGINT)
    done = running.result()
    assert done.code == 130
    assert "gpu[01-02]  interrupted" in done.stdout or "gpu02  interrupted" in done.stdout
    assert truth.transactions(second) == []
    assert truth.steps(second) == []
    truth.let_go(node)
    site.ok("apply")
    once(site, node)
    assert truth.transactions(second) == ["Install"]


def test_power_lost_during_a_transaction(nodes: Nodes, small: Small) -> None:
    """Nobody knows how far it came: what is there is read, and what is missing is done."""
    site, node = slow(nodes, small)
    running = site.start("apply")
    truth.slow_started(node)
    node.poweroff()
    node.poweron()
    node.wait_ready()
    done = running.result()
    assert done.code == 4, done.text
    assert "gpu01  lost" in done.stdout
    truth.let_go(node)
    again = site.run("apply")
    assert "took over package transaction: interrupted" in again.stderr
    assert again.code == 0, again.text
    assert truth.rpm(node, "slow-install") == "1.0-1.el9"
    assert truth.text(node, "/etc/after") == AFTER["/etc/after"]
    assert [s["state"] for s in truth.steps(node) if s["title"] == "package-transaction"] == ["interrupted", "done"]
    assert "0 changes" in site.ok("apply").verdict


def test_rebooted_by_hand_between_two_applies(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    truth.let_go(node)
    site.ok("apply")
    node.reboot()
    node.wait_ready()
    assert "0 changes" in site.ok("apply").verdict
    node.run("rm /etc/after")
    site.ok("apply")
    tokens = [s["token"] for s in truth.steps(node)]
    assert tokens == sorted(tokens)
    assert tokens[-1] > tokens[0], "the token rises over a boot as well"


@pytest.mark.deep
def test_rebooted_while_a_lease_is_held(nodes: Nodes, small: Small) -> None:
    """A lease of another boot is nobody's."""
    site, node = slow(nodes, small)
    running = site.start("apply", RECONCILE_LEASE_TTL="3600")
    truth.slow_started(node)
    running.send(signal.SIGKILL)
    running.result()
    assert site.other("other").run("apply").code == 6
    node.poweroff()
    node.poweron()
    node.wait_ready()
    truth.let_go(node)
    done = site.other("other").run("apply")
    assert done.code == 0, done.text
    assert truth.rpm(node, "slow-install") == "1.0-1.el9"


def test_interrupted_while_an_earlier_step_is_taken_over(nodes: Nodes, small: Small) -> None:
    site, node = slow(nodes, small)
    first = site.start("apply")
    truth.slow_started(node)
    first.send(signal.SIGKILL)
    first.result()
    second = site.start("apply")
    second.says("waiting for it, not repeating it")
    second.send(signal.SIGINT)
    assert second.result().code == 130
    assert truth.slow_runs(node) == ["start"]
    assert truth.stat(node, "/etc/after") == "none"
    truth.let_go(node)
    site.ok("apply")
    once(site, node)
