"""Two controllers, and at most one that writes."""

from __future__ import annotations

import signal

import pytest

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.truth import Nodes

PAIR = ("gpu01", "gpu02")


def test_a_second_controller_stops_on_the_whole_cluster(nodes: Nodes, small: Small) -> None:
    first, second = nodes.fresh(*PAIR)
    truth.hold_slow(first)
    second.run("echo 0 > /etc/lab/slow-seconds")
    site = small(nodes=PAIR, packages={"slow-install": "present"})
    running = site.start("apply")
    truth.slow_started(first)
    site.declare(nodes=PAIR, files={"/etc/second": "second\n"})
    other = site.other("other")
    done = other.run("apply")
    assert done.code == 6
    assert "another controller (" in done.stderr
    assert "this one does nothing on the whole cluster" in done.stderr
    told = other.run("apply", "--json")
    assert told.code == 6
    assert '"OtherController"' in told.stdout
    assert other.run("apply", "--on", "gpu02").code == 6, "also where only a node is asked for that waits for its turn"
    for node in (first, second):
        held = truth.lease(node)
        assert held is not None
        assert held["token"] == 1, "the first one's, and nobody else was given one"
        assert {s["plan"] for s in truth.steps(node)} <= {held["plan"]}
        assert truth.stat(node, "/etc/second") == "none"
    truth.let_go(first)
    assert running.result().code == 0
    assert truth.transactions(first) == ["Install"]
    assert other.ok("apply").stdout.count("converged") == 1
    assert truth.text(second, "/etc/second") == "second\n"


def test_two_applies_from_one_state_directory(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    truth.hold_slow(node)
    site = small(packages={"slow-install": "present"})
    running = site.start("apply")
    truth.slow_started(node)
    done = site.run("apply")
    assert done.code == 6
    assert f"another reconcile (pid {running.process.pid}) works on {site.state}" in done.stderr
    planned = site.run("plan")
    assert planned.code == 0
    assert "not noted in the status" in planned.stderr
    truth.let_go(node)
    assert running.result().code == 0
    assert truth.slow_runs(node) == ["start", "end"]


def test_a_frozen_controllers_late_write_is_refused(nodes: Nodes, small: Small) -> None:
    """Frozen, its lease runs out, another takes over; thawed, it must not undo what the other did."""
    node = nodes.one()
    truth.hold_slow(node)
    site = small(packages={"slow-install": "1.0-1.el9"}, files={"/etc/whose": "the first's\n"})
    running = site.start("apply", RECONCILE_LEASE_TTL="3")
    truth.slow_started(node)
    running.send(signal.SIGSTOP)
    truth.let_go(node)
    site.declare(packages={"slow-install": "1.0-1.el9"}, files={"/etc/whose": "the second's\n"})
    other = site.other("other")
    done = other.run("apply")
    while done.code == 6:
        done = other.run("apply")
    assert done.code == 0, done.text
    assert truth.text(node, "/etc/whose") == "the second's\n"
    written = truth.fingerprint(node)["/etc/whose"]
    running.send(signal.SIGCONT)
    late = running.result()
    assert late.code == 6, late.text
    assert "another controller took over: this one's write was refused" in late.text
    assert truth.text(node, "/etc/whose") == "the second's\n"
    assert truth.fingerprint(node)["/etc/whose"] == written
    assert truth.transactions(node) == ["Install"]
    assert truth.slow_runs(node) == ["start", "end"]
    assert "0 changes" in other.ok("apply").verdict


@pytest.mark.deep
def test_a_frozen_controller_that_had_only_to_say_good_bye(nodes: Nodes, small: Small) -> None:
    """Its last step is over when it is frozen: nothing is left to write, and still it was not the one who finished."""
    node = nodes.one()
    truth.hold_slow(node)
    site = small(packages={"slow-install": "present"})
    running = site.start("apply", RECONCILE_LEASE_TTL="3")
    truth.slow_started(node)
    running.send(signal.SIGSTOP)
    truth.let_go(node)
    other = site.other("other")
    done = other.run("apply")
    while done.code == 6:
        done = other.run("apply")
    assert done.code == 0, done.text
    running.send(signal.SIGCONT)
    late = running.result()
    assert late.code == 6, late.text
    assert "another controller took over" in late.text
    assert truth.transactions(node) == ["Install"]


@pytest.mark.deep
def test_a_controller_that_slept_longer_than_its_lease_goes_on_if_nobody_came(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    truth.hold_slow(node)
    site = small(packages={"slow-install": "present"}, files={"/etc/whose": "mine\n"})
    running = site.start("apply", RECONCILE_LEASE_TTL="1")
    truth.slow_started(node)
    running.send(signal.SIGSTOP)
    truth.let_go(node)
    truth.wait_in(node, "grep -q end /var/log/lab-slow.log")
    age = (
        "import json, time; r = json.load(open('/var/lib/reconcile/lease.json')); "
        "raise SystemExit(not time.clock_gettime(7) > r['renewed'] + r['ttl'])"
    )
    truth.wait_until(lambda: node.run(f'python3 -c "{age}"', check=False).returncode == 0, "the end of the lease")
    running.send(signal.SIGCONT)
    done = running.result()
    assert done.code == 0, done.text
    assert truth.text(node, "/etc/whose") == "mine\n"


def test_an_empty_plan_takes_no_lease_and_needs_none(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/x": "x\n"})
    site.ok("apply")
    lease = truth.lease(node)
    site.ok("apply")
    site.other("other").ok("apply")
    assert truth.lease(node) == lease


def test_a_lease_that_a_dead_controller_kept_is_given_back_by_its_next_apply(nodes: Nodes, small: Small) -> None:
    """It died when all was done and settled but this: nothing is left to do there, and nobody else could get in."""
    node = nodes.one()
    site = small(files={"/etc/x": "x\n"})
    site.ok("apply")
    holder = (site.state / "holder").read_text().strip()
    node.run(
        "python3 - <<'END'\nimport json, time\npath = '/var/lib/reconcile/lease.json'\nlease = json.load(open(path))\n"
        f"lease.update(holder='{holder}', ttl=3600.0, renewed=time.clock_gettime(7))\njson.dump(lease, open(path, 'w'))\nEND"
    )
    other = site.other("other")
    assert other.run("apply").code == 6
    assert "0 changes" in site.ok("apply").verdict
    held = truth.lease(node)
    assert held is not None
    assert held["holder"] == ""
    assert "0 changes" in other.ok("apply").verdict
